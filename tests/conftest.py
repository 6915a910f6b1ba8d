"""Finished cells with made-up numbers, installed packages, a full disk, and a real browser."""

import contextlib
import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grotta import _plugins
from grotta.bench.spec import CellSpec
from grotta.bench.store.records import BATCH_COLUMNS, domain_errors, to_bytes, total_error
from grotta.bench.store.results import RECORDS, CellResult, encode_result

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

MakeResult = Callable[..., CellResult]
BATCH = 10


@pytest.fixture(autouse=True, scope="session")
def cells_and_files_without_waiting() -> Iterator[None]:
    """Neither a full collection before each cell nor a wait for the disk after each file: there are thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grotta.bench.cell.loop.forget_peak_memory", lambda: None)
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


def batches_of(domains: int) -> list[int]:
    """How many batches each domain has: they differ, so that no mean over domains is one over images."""
    return [10 + 10 * place for place in range(domains)]


def made_up(method: str, gamma: float, errors: Mapping[str, float], **fields: Any) -> CellResult:
    """A result with these errors by domain; ``fields`` are of the spec or of the result."""
    own = {key: fields.pop(key) for key in ("model", "stream_hash", "provenance", "warnings") if key in fields}
    of_spec = {"dataset": "cifar10-c", **fields}
    spec = CellSpec(method=method, gamma=gamma, domains=tuple(errors), **of_spec)
    stream = f"{spec.dataset}{spec.domains}{gamma}{spec.stream_seed}"
    given = {
        "model": "cifar10_resnet",
        "stream_hash": hashlib.sha256(stream.encode()).hexdigest(),
        "provenance": "regenerated",
        "versions": {"grotta": "0.1", "torch": "2.6"},
        **own,
    }
    return CellResult(
        spec=spec,
        model_fingerprint="ab" * 32,
        error=float(np.average(list(errors.values()), weights=batches_of(len(errors)))),
        domain_errors=dict(errors),
        images=BATCH * sum(batches_of(len(errors))),
        classes=5,
        seconds=12.5,
        images_per_second=80.0,
        peak_memory_mb=300.0,
        **given,
    )


@pytest.fixture
def make_result() -> MakeResult:
    return made_up


def made_up_records(result: CellResult) -> dict[str, Any]:
    """Records with the errors of the result, if they are whole per cents: a domain has a multiple of 100 images."""
    generator = np.random.default_rng(int(result.spec.id[:8], 16))
    lengths = batches_of(len(result.spec.domains))
    batches, images = sum(lengths), sum(lengths) * BATCH
    columns: dict[str, Any] = {name: np.zeros(batches, kind) for name, kind in BATCH_COLUMNS.items()}
    columns["batch"][:] = np.arange(batches)
    columns["domain"][:] = np.repeat(np.arange(len(lengths)), lengths)
    columns["period"][:] = np.arange(batches) // 2
    columns["size"][:] = BATCH
    wrong = np.concatenate(
        [
            generator.permutation(BATCH * length) < round(error / 100 * BATCH * length)
            for error, length in zip(result.domain_errors.values(), lengths)
        ]
    )
    columns["errors"][:] = wrong.reshape(batches, BATCH).sum(1)
    columns["zeta"][:] = generator.uniform(0.2, 0.9, batches)
    columns["lam"][:] = np.nan
    columns["bank_size"][:] = np.minimum(50, BATCH * (1 + np.arange(batches)))
    labels = generator.integers(result.classes, size=images).astype(np.uint16)
    return {**columns, "labels": labels, "predictions": np.where(wrong, (labels + 1) % result.classes, labels)}


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[[list[CellResult]], Path]:
    """Write results as finished cells to a run's directory, as the benchmark leaves them."""

    def write(results: list[CellResult]) -> Path:
        out = tmp_path / "runs"
        for result in results:
            directory = out / "cells" / result.spec.id
            directory.mkdir(parents=True)
            columns = made_up_records(result)
            lengths = [BATCH * batches for batches in batches_of(len(result.spec.domains))]
            errors = domain_errors(columns, dict(zip(result.spec.domains, lengths, strict=True)))
            agreeing = replace(result, error=total_error(columns), domain_errors=errors)
            records = to_bytes(columns)
            (directory / RECORDS).write_bytes(records)
            (directory / "result.json").write_bytes(encode_result(agreeing, records))
        return out

    return write


def installed(folder: Path, package: str, entry_points: str, modules: Mapping[str, str]) -> None:
    """What an installer leaves of a package: its modules, and a dist-info with the entry points."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)


@pytest.fixture
def install() -> Callable[[Path, str, str, Mapping[str, str]], None]:
    return installed


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, and a process that has not asked for plug-ins yet."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(_plugins, "_loaded", set())
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let writing a larger file fail, as on a full disk."""
    resource = pytest.importorskip("resource", reason="limits of a process are set the POSIX way")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def limited_files() -> Callable[[int], contextlib.AbstractContextManager[None]]:
    return files_of_at_most


@pytest.fixture(scope="session")
def chromium() -> Iterator["Chrome"]:
    """The system's Chromium without a window, for tests marked ``browser``; ``browser`` gives it to a test."""
    from selenium import webdriver

    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        pytest.fail(f"{' and '.join(missing)} not found: `apt-get install chromium chromium-driver`", pytrace=False)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


class Browser:
    """A page in Chromium, and what tests of pages need of it."""

    def __init__(self, driver: "Chrome") -> None:
        self.driver = driver

    def open(self, address: str, *, width: int = 1280, height: int = 900, phone: bool = False) -> None:
        """Go to an address, in a window of this size."""
        self.resize(width, height, phone=phone)
        self.driver.get(address)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 3 if phone else 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Have a reader who prefers ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def press(self, key: str) -> None:
        """Press a key on whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(key)

    def until(self, script: str, *arguments: Any, seconds: float = 10.0) -> None:
        """Wait until a script returns something true."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: self.run(script, *arguments))

    def messages(self) -> list[dict[str, Any]]:
        """What the page has written to the console since the last call."""
        return list(self.driver.get_log("browser"))  # type: ignore[no-untyped-call]


@pytest.fixture
def browser(chromium: "Chrome") -> Iterator[Browser]:
    """A browser for one test, which fails if a page writes anything to the console."""
    browser = Browser(chromium)
    browser.messages()
    yield browser
    browser.prefer("light")
    assert browser.messages() == []
    chromium.get("about:blank")
