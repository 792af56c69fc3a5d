"""What the tests of the studies share: the embedded samples, and quick runs on the CPU."""

import pytest
from quick import MANIFESTS, quick_config

from octopus_study.data.fetch import fetch
from octopus_study.measure import read_rows, validate_rows
from octopus_study.studies import run_study
from octopus_study.studies.context import make_context


def sample(dataset, raw):
    fetch(dataset, raw_dir=raw, mode="sample", progress=False)
    return raw / f"{dataset}.json"


@pytest.fixture(scope="package")
def manifest(tmp_path_factory):
    return sample("visdrone-val", tmp_path_factory.mktemp("raw"))


@pytest.fixture(scope="package")
def scene_manifest(tmp_path_factory):
    return sample("sentinel2-b04", tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="package")
def runs(once, request):
    """The files of a quick run of each study, which take a minute: made once for all processes, a study when asked."""

    class Runs(dict):
        def __missing__(self, study):
            def fill(folder):
                manifest = request.getfixturevalue(MANIFESTS.get(study, "manifest"))
                run_study(study, config=quick_config({}), manifest=manifest, out=folder / f"{study}.csv")

            self[study] = once(f"run-{study}", fill) / f"{study}.csv"
            return self[study]

    return Runs()


@pytest.fixture(scope="package")
def quick_rows(manifest, tmp_path_factory):
    """Run a study with settings beside those of `quick.yaml`, and read its valid rows."""

    def run(study, manifest=manifest, **settings):
        out = tmp_path_factory.mktemp(study) / f"{study}.csv"
        run_study(study, config=quick_config(settings), manifest=manifest, out=out)
        validate_rows(out)
        return read_rows(out)

    return run


@pytest.fixture(scope="package")
def quick_context(manifest):
    def make(study, manifest=manifest, **settings):
        return make_context(study, quick_config(settings), manifest)

    return make
