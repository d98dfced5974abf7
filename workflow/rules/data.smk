rule download_source:
    input:
        # The prefix of a module is not for the user's own files.
        once_begun(lambda w: local(INPUTS.own_archive(w.source))),
    output:
        directory(f"{RESULTS}/data/raw/{{source}}"),
    log:
        f"{RESULTS}/logs/download_source/{{source}}.log",
    cache: "omit-software" if CACHE else False
    # The machine that starts Snakemake has network access, unlike many nodes of clusters.
    localrule: True
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(500),
        runtime=scaled(60),
    params:
        function="fairclust.pipeline.prepare_jobs:download",
        digest=lambda w: INPUTS.source_digest(w.source),
        asked=lambda w: INPUTS.asked(
            w.source, at_once="download" in workflow.dag_settings.targets
        ),
    message:
        "Fetching {wildcards.source}"
    script:
        "../scripts/job.py"


rule prepare_dataset:
    input:
        sources=once_begun(lambda w: INPUTS.source_folders(w.dataset)),
        own=lambda w: local(INPUTS.own_files(w.dataset)),
    output:
        directory(f"{RESULTS}/data/prepared/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_dataset/{{dataset}}.log",
    cache: CACHE
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(2000, per_input_mb=20),
        runtime=scaled(30, per_input_mb=0.1),
    params:
        function="fairclust.pipeline.prepare_jobs:prepare",
        digest=lambda w: INPUTS.dataset_digest(w.dataset),
    message:
        "Preparing {wildcards.dataset}"
    script:
        "../scripts/job.py"


# Unscaled data, for figures that show points.
use rule prepare_dataset as prepare_plane with:
    output:
        directory(f"{RESULTS}/data/plane/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_plane/{{dataset}}.log",
    params:
        function="fairclust.pipeline.prepare_jobs:prepare",
        digest=lambda w: INPUTS.dataset_digest(w.dataset),
        unscaled=True,
    message:
        "Preparing {wildcards.dataset}, unscaled"


rule build_graph:
    input:
        f"{RESULTS}/data/prepared/{{dataset}}",
    output:
        directory(f"{RESULTS}/data/graphs/{{dataset}}"),
    log:
        f"{RESULTS}/logs/build_graph/{{dataset}}.log",
    cache: CACHE
    conda:
        "../envs/fairclust.yml"
    threads: CONFIG.jobs.threads
    resources:
        mem_mb=scaled(4000, per_input_mb=10),
        runtime=scaled(60, per_input_mb=0.5),
    params:
        function="fairclust.pipeline.prepare_jobs:graph",
        digest=INPUTS.graph_digest(),
    message:
        "Building the neighbour graph of {wildcards.dataset}"
    script:
        "../scripts/job.py"


# For nodes without internet, run this first on a login node that has it: snakemake --cores 4 download
rule download:
    input:
        once_begun(lambda w: INPUTS.sources()),
    log:
        f"{RESULTS}/logs/download.log",
    retries: 0
    localrule: True
    conda:
        "../envs/fairclust.yml"
    params:
        function="fairclust.pipeline.prepare_jobs:check_downloads",
    message:
        "Checking the downloads"
    script:
        "../scripts/job.py"
