PAGE = {
    "numbers": rules.numbers.output.numbers,
    "claims": rules.claims.output.claims,
    "rules": "config/claims.yaml",
    "dates": "config/rules.tsv",
    "figures": expand("figures/{figure}.png", figure=outputs.figures()),
    "paper": PAPER_FILES,
}


rule page:
    input:
        **PAGE,
    output:
        report("figures/report.html", caption="../report/page.rst", category="Results page"),
    log:
        "logs/page.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Results page: report.html"
    shell:
        "octopus report page --numbers {input.numbers:q} --claims {input.claims:q} --rules {input.rules:q} --source paper --figures figures --out {output:q} 2>&1 | tee {log:q}"
