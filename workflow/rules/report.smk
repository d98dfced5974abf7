rule make_tables:
    input:
        f"{RESULTS}/scores/scores.parquet",
    output:
        PLAN.tables(),
    log:
        f"{RESULTS}/logs/make_tables.log",
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
        PLAN.figures(),
    log:
        f"{RESULTS}/logs/plot_figures.log",
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
