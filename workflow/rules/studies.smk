# A study takes all cores, so that nothing else runs while it measures.


rule stage_timing:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/stage_timing", rows=".csv", provenance=".json"),
    log:
        "logs/stage_timing.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("stage_timing"),
    message:
        "Study: where the time of one batch goes, on {MACHINE}"
    shell:
        "octopus measure stage_timing {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule distribution:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/distribution", rows=".csv", provenance=".json"),
    log:
        "logs/distribution.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("distribution"),
    message:
        "Study: what the distribution of box sizes costs, on {MACHINE}"
    shell:
        "octopus measure distribution {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule arena:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/arena", rows=".csv", provenance=".json"),
    log:
        "logs/arena.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("arena"),
    message:
        "Study: what users would pick instead, on {MACHINE}"
    shell:
        "octopus measure arena {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule parity:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/parity", rows=".csv", provenance=".json"),
    log:
        "logs/parity.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("parity"),
    message:
        "Study: how far the results lie from those of other libraries, on {MACHINE}"
    shell:
        "octopus measure parity {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule power:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/power", rows=".csv", provenance=".json"),
    log:
        "logs/power.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("power"),
    message:
        "Study: what a batch costs in energy, on {MACHINE}"
    shell:
        "octopus measure power {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule mapping:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/mapping", rows=".csv", provenance=".json"),
    log:
        "logs/mapping.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("mapping"),
    message:
        "Study: how a thread finds the item of its element, on {MACHINE}"
    shell:
        "octopus measure mapping {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule total_cost:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/total_cost", rows=".csv", provenance=".json"),
    log:
        "logs/total_cost.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("total_cost"),
    message:
        "Study: what a batch costs from setup to download, on {MACHINE}"
    shell:
        "octopus measure total_cost {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule sequences:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/sequences", rows=".csv", provenance=".json"),
    log:
        "logs/sequences.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("sequences"),
    message:
        "Study: ragged sequences against padding, on {MACHINE}"
    shell:
        "octopus measure sequences {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule satellite:
    input:
        rules.fetch_sentinel2.output,
    output:
        multiext(f"{RESULTS}/satellite", rows=".csv", provenance=".json"),
    log:
        "logs/satellite.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("satellite"),
    message:
        "Study: which tiles of a scene are worth the downlink, on {MACHINE}"
    shell:
        "octopus measure satellite {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule drone:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/drone", rows=".csv", provenance=".json"),
    log:
        "logs/drone.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("drone"),
    message:
        "Study: the crops of a video's detections, frame by frame, on {MACHINE}"
    shell:
        "octopus measure drone {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule detector:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/detector", rows=".csv", provenance=".json"),
    log:
        "logs/detector.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("detector"),
    message:
        "Study: detection end to end, prepared on the CPU or by Octopus, on {MACHINE}"
    shell:
        "octopus measure detector {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule concurrency:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/concurrency", rows=".csv", provenance=".json"),
    log:
        "logs/concurrency.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("concurrency"),
    message:
        "Study: two models on one GPU, and crops beside a model, on {MACHINE}"
    shell:
        "octopus measure concurrency {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule image_shape:
    input:
        rules.fetch_visdrone.output,
    output:
        multiext(f"{RESULTS}/image_shape", rows=".csv", provenance=".json"),
    log:
        "logs/image_shape.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    params:
        **study("image_shape"),
    message:
        "Study: memory and time of image models by the shape of their input, on {MACHINE}"
    shell:
        "octopus measure image_shape {params.settings:q} --receipt {input:q} --out {output.rows:q} 2>&1 | tee {log}"


rule measured:
    input:
        expand(f"{RESULTS}/{{study}}.{{part}}", study=STUDIES, part=["csv", "json"]),
    message:
        "All studies are measured on {MACHINE}"
