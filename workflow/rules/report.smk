# From the fits to the scores of the run, the tables, figures and claims of the papers, and the page.

# The code that reads what tables, figures and claims show, and that which reads the scores of the run.
PRODUCT_CODE = ("fairclust.pipeline.papers", "fairclust.report.material")
SCORES_CODE = "fairclust.pipeline.scores"
REPORT_CODE = (
    "fairclust.report.claims",
    "fairclust.report.figures",
    "fairclust.report.html",
    "fairclust.report.tables",
)
# The page explains metrics by their docstrings.
PAGE_FILES = [
    path
    for pattern in ("report/page/*.*", "metrics/*.py")
    for path in sorted(Path(fairclust.__file__).parent.glob(pattern))
]


rule scores:
    input:
        PLAN.fit_files(),
    output:
        multiext(f"{RESULTS}/scores/scores", ".parquet", ".csv"),
        multiext(f"{RESULTS}/scores/runs", ".parquet", ".csv"),
        summary=f"{RESULTS}/summary.json",
        provenance=f"{RESULTS}/provenance.json",
    log:
        f"{RESULTS}/logs/scores.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(2000),
        runtime=scaled(20),
    params:
        settings=lambda _: PLAN.settings(),
        # The provenance names the commit of the whole report.
        code=lambda _: code_of(SCORES_CODE, *REPORT_CODE, files=PAGE_FILES),
    message:
        "Gathering scores"
    script:
        "../scripts/scores.py"


rule table:
    input:
        fits=ask(lambda paper, table: PLAN.fits_shown(paper, "tables", table)),
        reported=ask(lambda paper, table: local(PLAN.reported_files(paper))),
    output:
        f"{RESULTS}/tables/{{paper}}/{{table}}.md",
        f"{RESULTS}/tables/{{paper}}/{{table}}.tex",
        report(
            f"{RESULTS}/tables/{{paper}}/{{table}}.csv",
            caption="../report/table.rst",
            category="Tables",
            subcategory="{paper}",
            labels={"table": "{table}"},
        ),
        evidence=f"{RESULTS}/tables/{{paper}}/{{table}}.evidence.csv",
    log:
        f"{RESULTS}/logs/table/{{paper}}/{{table}}.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500),
        runtime=scaled(20),
    params:
        product=ask(lambda paper, table: PLAN.product(paper, "tables", table)),
        code=ask(
            lambda paper, table: code_of(
                "fairclust.report.tables",
                *PRODUCT_CODE,
                files=PLAN.reported_files(paper),
            )
        ),
    message:
        "Making {wildcards.table} of {wildcards.paper}"
    script:
        "../scripts/table.py"


rule figure:
    input:
        fits=ask(lambda paper, figure: PLAN.fits_shown(paper, "figures", figure)),
        reported=ask(lambda paper, figure: local(PLAN.reported_files(paper))),
        unscaled=ask(PLAN.unscaled),
    output:
        report(
            f"{RESULTS}/figures/{{paper}}/{{figure}}.{CONFIG.report.formats[0]}",
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{paper}",
            labels={"figure": "{figure}"},
        ),
        [
            f"{RESULTS}/figures/{{paper}}/{{figure}}.{end}"
            for end in CONFIG.report.formats[1:]
        ],
    log:
        f"{RESULTS}/logs/figure/{{paper}}/{{figure}}.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500),
        runtime=scaled(20),
    params:
        product=ask(lambda paper, figure: PLAN.product(paper, "figures", figure)),
        code=ask(
            lambda paper, figure: code_of(
                "fairclust.report.figures",
                *PRODUCT_CODE,
                files=PLAN.reported_files(paper),
            )
        ),
    message:
        "Drawing {wildcards.figure} of {wildcards.paper}"
    script:
        "../scripts/figure.py"


rule claims:
    input:
        fits=ask(lambda paper: PLAN.fits_shown(paper, "claims")),
        reported=ask(lambda paper: local(PLAN.reported_files(paper))),
    output:
        f"{RESULTS}/tables/{{paper}}/claims.md",
        report(
            f"{RESULTS}/tables/{{paper}}/claims.csv",
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
        runtime=scaled(20),
    params:
        product=ask(lambda paper: PLAN.product(paper, "claims")),
        code=ask(
            lambda paper: code_of(
                "fairclust.report.claims",
                *PRODUCT_CODE,
                files=PLAN.reported_files(paper),
            )
        ),
    message:
        "Testing the claims of {wildcards.paper}"
    script:
        "../scripts/claims.py"


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
        names=lambda _: PLAN.names(),
        code=lambda _: code_of("fairclust.report.leaderboard", SCORES_CODE),
    message:
        "Making the leaderboard"
    script:
        "../scripts/leaderboard.py"


rule scoreboard:
    input:
        evidence=PLAN.files("tables", ends=["evidence.csv"]),
        claims=PLAN.files("claims", ends=["csv"]),
    output:
        f"{RESULTS}/tables/scoreboard.md",
        report(
            f"{RESULTS}/tables/scoreboard.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "scoreboard"},
        ),
    log:
        f"{RESULTS}/logs/scoreboard.log",
    conda:
        "../envs/fairclust.yml"
    params:
        titles=lambda _: {
            name: paper["short_name"] for name, paper in PLAN.papers().items()
        },
        names=lambda _: PLAN.names(),
        code=lambda _: code_of("fairclust.report.tables"),
    message:
        "Joining the verdicts of all papers"
    script:
        "../scripts/scoreboard.py"


rule page:
    input:
        scores=f"{RESULTS}/scores/scores.parquet",
        runs=f"{RESULTS}/scores/runs.parquet",
        leaderboard=f"{RESULTS}/scores/leaderboard.csv",
        origin=f"{RESULTS}/provenance.json",
        tables=PLAN.table_files(),
        figures=[file for file in PLAN.files("figures") if file.endswith(".png")],
    output:
        report(
            f"{RESULTS}/report/index.html",
            caption="../report/page.rst",
            category="Page",
            labels={"name": "report", "format": "html"},
        ),
    log:
        f"{RESULTS}/logs/page.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1500, per_input_mb=20),
        runtime=scaled(10),
    params:
        papers=lambda _: PLAN.papers(),
        names=lambda _: PLAN.names(),
        code=lambda _: code_of("fairclust.report.html", SCORES_CODE, files=PAGE_FILES),
    message:
        "Writing the page"
    script:
        "../scripts/page.py"


# The last rule sets the exit status: the page shows what is there, also if some fits have failed.
rule check:
    input:
        PLAN.targets(),
        summary=f"{RESULTS}/summary.json",
    output:
        touch(f"{RESULTS}/.complete"),
    log:
        f"{RESULTS}/logs/check.log",
    retries: 0
    localrule: True
    conda:
        "../envs/fairclust.yml"
    params:
        strict=CONFIG.strict,
    message:
        "Checking that every fit is there"
    script:
        "../scripts/check.py"


# Targets for parts of the results: `snakemake tables`, `snakemake figures`, and one for each paper, as `snakemake vfc`.
rule tables:
    input:
        PLAN.table_files(),
    localrule: True


rule figures:
    input:
        PLAN.files("figures"),
    localrule: True


for _paper in PLAN.specs:

    rule:
        name:
            _paper
        input:
            PLAN.files("tables", "figures", "claims", papers=[_paper]),
        localrule: True
