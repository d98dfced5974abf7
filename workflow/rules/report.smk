rule scores:
    input:
        INPUTS.packs(),
    output:
        multiext(f"{RESULTS}/scores/scores", ".parquet", ".csv"),
        multiext(f"{RESULTS}/scores/runs", ".parquet", ".csv"),
        f"{RESULTS}/summary.json",
        f"{RESULTS}/provenance.json",
    log:
        f"{RESULTS}/logs/scores.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(2000),
        runtime=scaled(20),
    params:
        remade=INPUTS.remade("scores"),
        configuration=INPUTS.configuration_digest(),
        code=INPUTS.code_of("pipeline.scores", "pipeline.summary"),
    message:
        "Gathering scores"
    script:
        "../scripts/scores.py"


rule table:
    input:
        packs=lambda w: INPUTS.packs(INPUTS.tables[w.paper, w.name].needs),
        reported=lambda w: INPUTS.reported_files(w.paper),
    output:
        report(
            multiext(f"{RESULTS}/tables/{{paper}}/{{name}}", ".md", ".csv", ".tex"),
            caption="../report/table.rst",
            category="Tables",
            subcategory="{paper}",
            labels={"table": "{name}"},
        ),
        f"{RESULTS}/tables/{{paper}}/{{name}}.verdicts.csv",
    log:
        f"{RESULTS}/logs/table/{{paper}}/{{name}}.log",
    wildcard_constraints:
        name=r"(?!claims\.)[\w-]+",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500),
        runtime=scaled(10),
    params:
        remade=lambda w: INPUTS.remade(f"table/{w.paper}/{w.name}"),
        table=lambda w: INPUTS.table_params(w.paper, w.name),
    message:
        "Making table {wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/table.py"


rule claims:
    input:
        packs=lambda w: INPUTS.packs(INPUTS.claims[w.paper].needs),
        reported=lambda w: INPUTS.reported_files(w.paper),
    output:
        report(
            multiext(f"{RESULTS}/tables/{{paper}}/claims", ".md", ".csv", ".tex"),
            caption="../report/table.rst",
            category="Tables",
            subcategory="{paper}",
            labels={"table": "claims"},
        ),
    log:
        f"{RESULTS}/logs/claims/{{paper}}.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500),
        runtime=scaled(10),
    params:
        remade=lambda w: INPUTS.remade(f"claims/{w.paper}"),
        claims=lambda w: INPUTS.claims_params(w.paper),
    message:
        "Testing the claims of {wildcards.paper}"
    script:
        "../scripts/claims.py"


rule figure:
    input:
        packs=lambda w: INPUTS.packs(INPUTS.figures[w.paper, w.name].needs),
        planes=lambda w: INPUTS.planes(w.paper, w.name),
        reported=lambda w: INPUTS.reported_files(w.paper),
    output:
        report(
            expand(
                f"{RESULTS}/figures/{{{{paper}}}}/{{{{name}}}}.{{kind}}",
                kind=CONFIG.report.formats,
            ),
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{paper}",
            labels={"figure": "{name}"},
        ),
    log:
        f"{RESULTS}/logs/figure/{{paper}}/{{name}}.log",
    wildcard_constraints:
        name=r"[\w.-]+",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500),
        runtime=scaled(10),
    params:
        remade=lambda w: INPUTS.remade(f"figure/{w.paper}/{w.name}"),
        figure=lambda w: INPUTS.figure_params(w.paper, w.name),
    message:
        "Drawing {wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/figure.py"


rule overview:
    input:
        f"{RESULTS}/scores/scores.parquet",
        f"{RESULTS}/scores/runs.parquet",
    output:
        report(
            multiext(f"{RESULTS}/tables/overview", ".md", ".csv", ".tex"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "overview"},
        ),
    log:
        f"{RESULTS}/logs/overview.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500, per_input_mb=20),
        runtime=scaled(10),
    params:
        remade=INPUTS.remade("overview"),
        names=INPUTS.all_names(),
        level=CONFIG.report.fairness_error,
        code=INPUTS.module_code("fairclust.report.tables"),
    message:
        "Making the overview"
    script:
        "../scripts/overview.py"


rule leaderboard:
    input:
        f"{RESULTS}/scores/scores.parquet",
        f"{RESULTS}/scores/runs.parquet",
    output:
        f"{RESULTS}/scores/leaderboard.csv",
    log:
        f"{RESULTS}/logs/leaderboard.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500, per_input_mb=20),
        runtime=scaled(10),
    params:
        remade=INPUTS.remade("leaderboard"),
        names=INPUTS.all_names(),
        code=INPUTS.module_code("fairclust.report.leaderboard"),
    message:
        "Making the leaderboard"
    script:
        "../scripts/leaderboard.py"


rule scoreboard:
    input:
        **{
            f"{kind}_{paper}": files
            for paper in INPUTS.papers_shown()
            for kind, files in (
                ("verdicts", INPUTS.verdicts(paper)),
                ("claims", INPUTS.claim_files(paper)),
            )
        },
    output:
        report(
            multiext(f"{RESULTS}/tables/scoreboard", ".md", ".csv", ".tex"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "scoreboard"},
        ),
    log:
        f"{RESULTS}/logs/scoreboard.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500),
        runtime=scaled(10),
    params:
        remade=INPUTS.remade("scoreboard"),
        papers=INPUTS.papers_shown(),
        names=INPUTS.all_names(),
        code=INPUTS.module_code("fairclust.report.scoreboard"),
    message:
        "Making the scoreboard"
    script:
        "../scripts/scoreboard.py"


rule page:
    input:
        scores=f"{RESULTS}/scores/scores.parquet",
        runs=f"{RESULTS}/scores/runs.parquet",
        origin=f"{RESULTS}/provenance.json",
        scoreboard=[f"{RESULTS}/tables/scoreboard.csv"] * bool(INPUTS.tables),
        tables=INPUTS.table_files(),
        figures=[file for file in INPUTS.figure_files() if file.endswith(".png")],
    output:
        page=report(
            f"{RESULTS}/report/index.html",
            caption="../report/page.rst",
            category="Page",
            labels={"name": "report", "format": "html"},
        ),
        archive=f"{RESULTS}/report.zip",
    log:
        f"{RESULTS}/logs/page.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500, per_input_mb=20),
        runtime=scaled(10),
    params:
        remade=INPUTS.remade("page"),
        page=INPUTS.page_params(),
    message:
        "Writing the page"
    script:
        "../scripts/page.py"


# The last rule sets the exit status: the page shows what is there, also if some jobs have failed.
rule check:
    input:
        summary=f"{RESULTS}/summary.json",
        others=INPUTS.products(),
    output:
        touch(f"{RESULTS}/.complete"),
    log:
        f"{RESULTS}/logs/check.log",
    localrule: True
    conda:
        "../envs/fairclust.yml"
    params:
        strict=CONFIG.strict,
    message:
        "Checking that every cell is there"
    script:
        "../scripts/check.py"


# Targets for parts of the results: `snakemake tables`, `snakemake figures`, and one for each paper, as `snakemake vfc`.
rule tables:
    input:
        INPUTS.table_files(),
    localrule: True


rule figures:
    input:
        INPUTS.figure_files(),
    localrule: True


for _paper in CONFIG.run.papers:

    rule:
        name:
            _paper
        input:
            INPUTS.table_files(_paper),
            INPUTS.figure_files(_paper),
        localrule: True
