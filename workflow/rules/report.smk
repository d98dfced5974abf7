rule make_tables:
    input:
        f"{RESULTS}/scores/scores.parquet",
    output:
        [
            report(
                file,
                caption="../report/table.rst",
                category="Tables",
                labels=PLAN.label(file),
            )
            for file in PLAN.tables()
        ],
    log:
        f"{RESULTS}/logs/make_tables.log",
    group:
        "report"
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1000),
        runtime=scaled(10),
    params:
        report=PLAN.report_params(),
    message:
        "Making the tables"
    script:
        "../scripts/make_tables.py"


rule plot_figures:
    input:
        f"{RESULTS}/scores/scores.parquet",
        f"{RESULTS}/scores/steps.parquet",
        f"{RESULTS}/scores/runs.parquet",
        planes=PLAN.planes(),
    output:
        [
            report(
                file,
                caption="../report/figure.rst",
                category="Figures",
                labels=PLAN.label(file),
            )
            for file in PLAN.figures()
        ],
    log:
        f"{RESULTS}/logs/plot_figures.log",
    group:
        "report"
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1000),
        runtime=scaled(10),
    params:
        report=PLAN.report_params(),
        stores=f"{RESULTS}/cells",
    message:
        "Drawing the figures"
    script:
        "../scripts/plot_figures.py"


rule make_report:
    input:
        scores=f"{RESULTS}/scores/scores.parquet",
        runs=f"{RESULTS}/scores/runs.parquet",
        origin=f"{RESULTS}/provenance.json",
        tables=PLAN.tables(),
    output:
        page=report(
            f"{RESULTS}/report/index.html",
            caption="../report/page.rst",
            category="Page",
            labels={"name": "report", "format": "html"},
        ),
        archive=f"{RESULTS}/report.zip",
    log:
        f"{RESULTS}/logs/make_report.log",
    group:
        "report"
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1000),
        runtime=scaled(10),
    params:
        page=PLAN.page_params(),
    message:
        "Writing the report"
    script:
        "../scripts/make_report.py"


rule check_strict:
    input:
        f"{RESULTS}/summary.json",
    output:
        touch(f"{RESULTS}/.strict-ok"),
    log:
        f"{RESULTS}/logs/check_strict.log",
    localrule: True
    conda:
        "../envs/fairclust.yml"
    message:
        "Checking that every cell is there (strict: true)"
    script:
        "../scripts/check_strict.py"
