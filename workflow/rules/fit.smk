rule fit_block:
    input:
        data=f"{RESULTS}/data/prepared/{{dataset}}",
        graph=lambda w: PLAN.graph_of(w.dataset, w.method),
    output:
        f"{RESULTS}/fits/{{dataset}}/{{method}}/{{block}}.jsonl",
    log:
        f"{RESULTS}/logs/fit_block/{{dataset}}/{{method}}/{{block}}.log",
    # Of a data set, so that no block waits for another data set; how many blocks share a job of a cluster says
    # `group-components` in profiles/slurm.
    group:
        "fit_{dataset}"
    conda:
        "../envs/fairclust.yml"
    threads: CONFIG.resources.threads
    resources:
        mem_mb=scaled(CONFIG.resources.mem_mb, per_input_mb=6),
        runtime=scaled(CONFIG.resources.runtime, per_input_mb=0.5),
    params:
        block=lambda w: PLAN.block_params(w.dataset, w.method, w.block),
        score_settings=CONFIG.score.model_dump(),
        scorer=PLAN.scorer_fingerprint(),
        again=lambda w: PLAN.retry_errors(w.dataset, w.method, w.block),
        code=PLAN.job_code("runner", "worker", "scoring"),
        store=lambda w: PLAN.store(w.dataset, w.method, w.block),
    message:
        "Fitting and scoring {wildcards.method} on {wildcards.dataset}, {wildcards.block}"
    script:
        "../scripts/fit_block.py"


rule gather_scores:
    input:
        PLAN.indexes(),
    output:
        multiext(f"{RESULTS}/scores/scores", ".parquet", ".csv"),
        multiext(f"{RESULTS}/scores/runs", ".parquet", ".csv"),
        f"{RESULTS}/scores/steps.parquet",
        f"{RESULTS}/summary.json",
        f"{RESULTS}/provenance.json",
    log:
        f"{RESULTS}/logs/gather_scores.log",
    group:
        "report"
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(1000),
        runtime=scaled(10),
    params:
        settings=PLAN.settings(),
        code=PLAN.job_code("gather", "summary"),
    message:
        "Gathering scores"
    script:
        "../scripts/gather_scores.py"
