NUMBERS = {
    "numbers": report("paper/build/numbers.csv", caption="../report/numbers.rst", category="Numbers"),
    "authors": "paper/build/numbers.json",
    "series": directory("paper/build/series"),
}


rule numbers:
    input:
        [*rules.measured.input, *COMMITTED_FILES],
    output:
        **NUMBERS,
    log:
        "logs/numbers.log",
    conda:
        "../envs/octopus.yaml"
    params:
        folders=[f"--results={RESULTS}", f"--reference={CONFIG.reference_dir}", "--published=data/published"],
        committed=COMMITTED_FILES,
        code=REPORT_CODE,
    message:
        "Report: every number, from this run, the reference and the published tables"
    shell:
        "octopus report numbers {params.folders:q} --out {output.numbers:q} 2>&1 | tee {log:q}"


rule claims:
    input:
        numbers=rules.numbers.output.numbers,
        claims="config/claims.yaml",
        dates="config/rules.tsv",
    output:
        claims=report("paper/build/claims.csv", caption="../report/claims.rst", category="Claims"),
        tally="paper/build/claims.json",
    log:
        "logs/claims.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Report: verdict on each claim"
    shell:
        "octopus report claims --numbers {input.numbers:q} --claims {input.claims:q} --out {output.claims:q} 2>&1 | tee {log:q}"


rule tables:
    input:
        numbers=rules.numbers.output.numbers,
        claims=rules.claims.output.claims,
    output:
        expand("paper/build/tables/{table}.{kind}", table=outputs.table_names(), kind=["typ", "md"]),
    log:
        "logs/tables.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Report: tables for Typst and Markdown"
    shell:
        "octopus report tables --numbers {input.numbers:q} --claims {input.claims:q} --out-dir paper/build/tables 2>&1 | tee {log:q}"


SHOWN = {"caption": "../report/figure.rst", "category": "Figures"}
PICTURES = {
    f"figures/{name}.png": {"figure": name, "shows": chart.caption}
    for name, (_, chart) in outputs.figures().items()
}


rule figures:
    input:
        numbers=rules.numbers.output.numbers,
        series=rules.numbers.output.series,
    output:
        [report(picture, labels=labels, **SHOWN) for picture, labels in PICTURES.items()],
        expand("figures/{figure}.pdf", figure=outputs.figures()),
    log:
        "logs/figures.log",
    conda:
        "../envs/octopus.yaml"
    threads: 8
    params:
        code=REPORT_CODE,
    message:
        "Report: all figures"
    shell:
        "octopus report figures --numbers {input.numbers:q} --out-dir figures --processes {threads:q} 2>&1 | tee {log:q}"


rule shown:
    input:
        rules.numbers.output.authors,
        rules.claims.output,
        rules.tables.output,
        rules.figures.output,
    message:
        "All figures, tables and claims are built"
