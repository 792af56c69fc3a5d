rule numbers:
    input:
        [*rules.measured.input, *COMMITTED_FILES],
    output:
        report("paper/build/numbers.csv", caption="../report/numbers.rst", category="Numbers"),
        "paper/build/numbers.json",
        directory("paper/build/series"),
    log:
        "logs/numbers.log",
    conda:
        "../envs/octopus.yaml"
    params:
        folders=f"--results={RESULTS} --reference={CONFIG.reference_dir} --published=data/published",
        code=REPORT_CODE,
    message:
        "Report: every number, from this run, the reference and the published tables"
    shell:
        "octopus report numbers {params.folders} --out {output[0]} 2>&1 | tee {log}"


rule claims:
    input:
        numbers=rules.numbers.output[0],
        claims="config/claims.yaml",
    output:
        report("paper/build/claims.csv", caption="../report/claims.rst", category="Claims"),
    log:
        "logs/claims.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Report: verdict on each claim"
    shell:
        "octopus report claims --numbers {input.numbers} --claims {input.claims} --out {output} 2>&1 | tee {log}"


rule tables:
    input:
        numbers=rules.numbers.output[0],
        claims=rules.claims.output,
    output:
        expand("paper/build/tables/{table}.{kind}", table=tables.names(), kind=["typ", "md"]),
    log:
        "logs/tables.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Report: tables for Typst and Markdown"
    shell:
        "octopus report tables --numbers {input.numbers} --claims {input.claims} --out-dir paper/build/tables 2>&1 | tee {log}"


rule figure:
    input:
        numbers=rules.numbers.output[0],
        series=rules.numbers.output[2],
    output:
        pdf="figures/{figure}.pdf",
        png=report("figures/{figure}.png", caption="../report/figure.rst", category="Figures"),
    log:
        "logs/figure_{figure}.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Report: figure {wildcards.figure}"
    shell:
        "octopus report figure {wildcards.figure} --numbers {input.numbers} --out {output.pdf} 2>&1 | tee {log}"


rule shown:
    input:
        rules.claims.output,
        rules.tables.output,
        expand(["figures/{figure}.pdf", "figures/{figure}.png"], figure=charts.names()),
    message:
        "All figures, tables and claims are built"
