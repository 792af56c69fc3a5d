rule fetch_visdrone:
    input:
        "config/datasets.tsv",
    output:
        f"{RAW}/visdrone-val.json",
    log:
        "logs/fetch_visdrone.log",
    conda:
        "../envs/octopus.yaml"
    params:
        **source(),
    message:
        "Data: VisDrone2019-DET val"
    shell:
        "octopus fetch visdrone-val {params.options:q} --manifest {output:q} 2>&1 | tee {log:q}"


rule fetch_sentinel2:
    input:
        "config/datasets.tsv",
    output:
        f"{RAW}/sentinel2-b04.json",
    log:
        "logs/fetch_sentinel2.log",
    conda:
        "../envs/octopus.yaml"
    params:
        **source(f"--window={json.dumps(CONFIG.sentinel2.window)}"),
    message:
        "Data: Sentinel-2 band B04 over Greenland"
    shell:
        "octopus fetch sentinel2-b04 {params.options:q} --manifest {output:q} 2>&1 | tee {log:q}"


rule data:
    input:
        rules.fetch_visdrone.output,
        rules.fetch_sentinel2.output,
    message:
        "All data sets are in {RAW}"
