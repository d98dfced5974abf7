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
        function="fairclust.pipeline.scores:scores",
        remade=INPUTS.remade("scores"),
        digest=INPUTS.scores_digest(),
    message:
        "Gathering scores"
    script:
        "../scripts/job.py"


# Every paper of the run is a rule of its name: `snakemake vfc` makes its tables, its figures and the test of its claims.
for _paper in INPUTS.shown:

    rule:
        name:
            _paper
        input:
            packs=INPUTS.packs(INPUTS.needs_of(_paper)),
            planes=of_paper(INPUTS.planes, _paper),
            reported=local(INPUTS.specs[_paper].files),
        output:
            [
                report(
                    file,
                    caption="../report/table.rst",
                    category="Tables",
                    subcategory=_paper,
                    labels={"table": Path(file).stem},
                )
                for file in INPUTS.tables_of(_paper)
            ],
            [
                report(
                    file,
                    caption="../report/figure.rst",
                    category="Figures",
                    subcategory=_paper,
                    labels={"figure": Path(file).stem},
                )
                for file in INPUTS.figures_of(_paper)
            ],
            INPUTS.verdicts(_paper),
            problems=f"{RESULTS}/problems/{_paper}.json",
        log:
            f"{RESULTS}/logs/report/{_paper}.log",
        conda:
            "../envs/fairclust.yml"
        resources:
            mem_mb=scaled(1500),
            runtime=scaled(20),
        params:
            function="fairclust.report.jobs:paper",
            paper=_paper,
            remade=INPUTS.remade(f"report/{_paper}"),
            again=INPUTS.retry_problems(_paper),
            digest=of_paper(INPUTS.paper_digest, _paper),
        message:
            f"Making the tables and figures of {_paper}"
        script:
            "../scripts/job.py"


rule board:
    input:
        scores=[f"{RESULTS}/scores/scores.parquet", f"{RESULTS}/scores/runs.parquet"],
        verdicts=[file for paper in INPUTS.shown for file in INPUTS.verdicts(paper)],
        claims=[
            file for file in INPUTS.table_files() if Path(file).name == "claims.csv"
        ],
    output:
        report(
            INPUTS.board_files(),
            caption="../report/table.rst",
            category="Tables",
        ),
        leaderboard=f"{RESULTS}/scores/leaderboard.csv",
        settings=f"{RESULTS}/scores/settings.parquet",
    log:
        f"{RESULTS}/logs/board.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500, per_input_mb=20),
        runtime=scaled(10),
    params:
        function="fairclust.report.jobs:board",
        remade=INPUTS.remade("board"),
        digest=INPUTS.report_digest("tables", "leaderboard"),
    message:
        "Making the settings, the overview, the leaderboard and the scoreboard"
    script:
        "../scripts/job.py"


rule page:
    input:
        scores=f"{RESULTS}/scores/scores.parquet",
        runs=f"{RESULTS}/scores/runs.parquet",
        settings=f"{RESULTS}/scores/settings.parquet",
        leaderboard=f"{RESULTS}/scores/leaderboard.csv",
        origin=f"{RESULTS}/provenance.json",
        scoreboard=[f"{RESULTS}/tables/scoreboard.csv"] * bool(INPUTS.papers_shown()),
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
        function="fairclust.report.jobs:page",
        remade=INPUTS.remade("page"),
        digest=INPUTS.page_digest(),
    message:
        "Writing the page"
    script:
        "../scripts/job.py"


# The last rule sets the exit status: the page shows what is there, also if some jobs have failed.
rule check:
    input:
        summary=f"{RESULTS}/summary.json",
        problems=[f"{RESULTS}/problems/{paper}.json" for paper in INPUTS.shown],
        others=INPUTS.products(),
    output:
        touch(f"{RESULTS}/.complete"),
    log:
        f"{RESULTS}/logs/check.log",
    retries: 0
    localrule: True
    conda:
        "../envs/fairclust.yml"
    params:
        function="fairclust.pipeline.run_events:check",
        strict=CONFIG.strict,
    message:
        "Checking that every cell is there"
    script:
        "../scripts/job.py"


# Targets for parts of the results: `snakemake tables`, `snakemake figures`, and one for each paper, as `snakemake vfc`.
rule tables:
    input:
        INPUTS.table_files(),
    localrule: True


rule figures:
    input:
        INPUTS.figure_files(),
    localrule: True
