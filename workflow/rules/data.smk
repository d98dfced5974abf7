rule download_source:
    output:
        f"{RESULTS}/data/raw/{{source}}.source.json",
    log:
        f"{RESULTS}/logs/download_source/{{source}}.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(500),
        runtime=scaled(60),
    params:
        spec=lambda w: PLAN.source_params(w.source),
        asked=lambda w: PLAN.asked(w.source),
    message:
        "Fetching {wildcards.source}"
    script:
        "../scripts/download_source.py"


rule prepare_dataset:
    input:
        lambda w: PLAN.source_files(w.dataset),
    output:
        directory(f"{RESULTS}/data/prepared/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_dataset/{{dataset}}.log",
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(2000),
        runtime=scaled(30),
    params:
        spec=lambda w: PLAN.dataset_params(w.dataset),
    message:
        "Preparing {wildcards.dataset}"
    script:
        "../scripts/prepare_dataset.py"


# The same without scaling, for figures that show points.
use rule prepare_dataset as prepare_plane with:
    output:
        directory(f"{RESULTS}/data/plane/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_plane/{{dataset}}.log",
    params:
        spec=lambda w: PLAN.dataset_params(w.dataset, scale="none"),
    message:
        "Preparing {wildcards.dataset}, unscaled"


rule build_graph:
    input:
        f"{RESULTS}/data/prepared/{{dataset}}",
    output:
        directory(f"{RESULTS}/data/graphs/{{dataset}}"),
    log:
        f"{RESULTS}/logs/build_graph/{{dataset}}.log",
    conda:
        "../envs/fairclust.yml"
    threads: CONFIG.resources.threads
    resources:
        mem_mb=scaled(4000),
        runtime=scaled(60),
    params:
        graph=PLAN.graph_params(),
    message:
        "Building the neighbour graph of {wildcards.dataset}"
    script:
        "../scripts/build_graph.py"
