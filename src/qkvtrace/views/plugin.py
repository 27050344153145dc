"""The tab Q/K/V of TensorBoard: routes that answer with scenes, over the runs under its logdir.

TensorBoard imports this when it starts, so PyTorch is imported only where data is asked for.
Whatever is wrong with a folder or an address is answered with a sentence, {"error": ...}.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from tensorboard.util import tb_logging
from werkzeug import Request, Response

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.views import parameters
from qkvtrace.views.logdir import Logdir, NotThere
from qkvtrace.views.plotly import plotly

if TYPE_CHECKING:
    from qkvtrace.views.history import Cache, History
    from qkvtrace.views.scene import Place

WEB = Path(__file__).parent / "web"
KINDS = {".css": "text/css", ".js": "text/javascript"}
FILES = {path.name: KINDS[path.suffix] for path in WEB.iterdir() if path.suffix in KINDS}
POLICY = (  # of the view outside TensorBoard's frame: it speaks to this server alone
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
Asked = Mapping[str, str]
Data = dict[str, Any]


class QKVPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard has no types
    """Serves the view and its data, below /data/plugin/qkv."""

    plugin_name = "qkv"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self.logdir = Logdir(Path(context.logdir).expanduser() if context.logdir else None)
        self._lock = threading.Lock()
        self._cache: Cache | None = None
        self._described: dict[str, Data] = {}

    def is_active(self) -> bool:
        """Always: where there is no run the tab says so, and one may appear at any time."""
        return True

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab; it keeps itself up to date."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name="Q/K/V", disable_reload=True
        )

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """The routes: the view, its files, and what it asks for."""
        apps = {f"/{name}": _page(name) for name in ("view", "studies")}
        apps["/plotly.min.js"] = _plotly
        apps |= {f"/{name}": _file(name, kind) for name, kind in FILES.items()}
        asks = (
            *(self.runs, self.state, self.run, self.cloud, self.attention, self.alike),
            *(self.curves, self.neighbours, self.answers),
        )
        apps |= {f"/{ask.__name__}": _answer(ask) for ask in asks}
        return apps

    def runs(self, _: Asked) -> Data:
        """The runs there are, and whether they hold snapshots."""
        return {
            "runs": [
                {"name": name, "recorded": (folder / "snapshots" / "index.json").is_file()}
                for name, folder in self.logdir.runs().items()
            ]
        }

    def state(self, asked: Asked) -> Data:
        """A text that changes when the run has new snapshots."""
        return {"version": self._history(asked).version()}

    def run(self, asked: Asked) -> Data:
        """What there is to choose from in a run."""
        return self._describe(asked, self._history(asked))

    def cloud(self, asked: Asked) -> Data:
        """Points through the epochs."""
        from qkvtrace.views import scene

        history, place, about = self._place(asked)
        vectors = parameters.vectors(asked, place, about)
        pair = parameters.pair(asked, about)
        found = scene.cloud(
            history.layer(place.site, place.layer),
            place,
            vectors,
            sentences=None if asked.get("sentences") == "all" else pair,
            words=parameters.words(asked),
            pair=(pair[0], pair[1]) if len(pair) == 2 else None,
        )
        left_out = [{"epoch": epoch, "reason": why} for epoch, why in history.left_out.items()]
        return found | {"left_out": left_out}

    def attention(self, asked: Asked) -> Data:
        """The attention weights of a sentence."""
        from qkvtrace.views import scene

        history, place, about = self._place(asked)
        sentence = parameters.sentence(asked, "sentence", about)
        return scene.attention(history.layer(place.site, place.layer), place, sentence)

    def alike(self, asked: Asked) -> Data:
        """The cosines between two sentences."""
        from qkvtrace.snapshots.sites import AXES
        from qkvtrace.views import scene

        history, place, about = self._place(asked)
        a, b = (parameters.sentence(asked, name, about) for name in ("a", "b"))
        vector = parameters.one_of("vector", asked.get("vector", ""), AXES)
        return scene.alike(history.layer(place.site, place.layer), place, a, b, vector)

    def curves(self, asked: Asked) -> Data:
        """A head in a few numbers an epoch."""
        from qkvtrace.views import scene

        history, place, _ = self._place(asked)
        return scene.curves(history.layer(place.site, place.layer), place)

    def answers(self, asked: Asked) -> Data:
        """The studies that were made of a run, and claims of its kind."""
        from qkvtrace.views import page

        run = Run.open(self.logdir.run(asked.get("run", "")))
        self._check_inside(page.sources(run))
        data, _ = page.answers(run)
        return data

    def neighbours(self, asked: Asked) -> Data:
        """The vectors nearest to one point's at one epoch."""
        from qkvtrace.snapshots.sites import AXES
        from qkvtrace.studies.points import Point
        from qkvtrace.views import scene

        history, place, about = self._place(asked)
        vectors = parameters.vectors(asked, place, about)
        vector = parameters.one_of("vector", asked.get("vector", ""), vectors)
        sentence = parameters.sentence(asked, "sentence", about)
        epoch = parameters.number("epoch", asked.get("epoch"))
        for snapshot in history.layer(place.site, place.layer):
            if snapshot.epoch == epoch:
                tokens = place.site.tokens(snapshot.sentences[sentence], AXES[vector])
                position = parameters.number("position", asked.get("position"), len(tokens))
                point = Point(vector, sentence, position, tokens[position])
                among = [sentence, *parameters.pair(asked, about)]
                among_all = asked.get("sentences") == "all"
                nearest = scene.neighbours(
                    snapshot, place, point, vectors, None if among_all else among
                )
                return {"nearest": nearest}
        raise NotThere(f"epoch: expected one that can be read, found {epoch}")

    def _history(self, asked: Asked) -> "History":
        from qkvtrace.model.device import one_thread
        from qkvtrace.views.history import Cache, History

        folder = self.logdir.run(asked.get("run", ""))
        with self._lock:
            if self._cache is None:
                one_thread()
                self._cache = Cache()
        return History(folder / "snapshots", self.logdir.root, self._cache)

    def _describe(self, asked: Asked, history: "History") -> Data:
        from qkvtrace.snapshots.sites import SITES
        from qkvtrace.views import scene

        name, version = asked["run"], history.version()
        if self._described.get(name, {}).get("version") != version:
            about = scene.about(history.layer(SITES[0], 0), history.last())
            named = {"name": name, "version": version, "vocabulary": self._vocabulary(asked)}
            self._described[name] = named | about
        return self._described[name]

    def _vocabulary(self, asked: Asked) -> list[str]:
        """The run's tokens, in the order of their colours; none if they cannot be read."""
        from qkvtrace.views import page

        run = Run(self.logdir.run(asked["run"]))
        try:
            self._check_inside(run.vocabulary(side) for side in ("source", "target"))
            return page.vocabulary(run)
        except (UserError, OSError):
            return []

    def _check_inside(self, paths: Iterable[Path]) -> None:
        """Raise UserError if a path leads out of the log directory by a link."""
        for path in paths:
            if not path.resolve().is_relative_to(self.logdir.root):
                raise UserError(f"expected a file of the run, found a link to elsewhere: {path}")

    def _place(self, asked: Asked) -> "tuple[History, Place, Data]":
        from qkvtrace.snapshots.sites import site_named
        from qkvtrace.views import scene

        history = self._history(asked)
        about = self._describe(asked, history)
        site = site_named(asked.get("site", ""))
        there = next((s for s in about["sites"] if s["name"] == site.name), None)
        if there is None:
            raise NotThere(f"this run has no {site.title.lower()}")
        layer, head = (
            parameters.number(name, asked.get(name), there[f"{name}s"])
            for name in ("layer", "head")
        )
        return history, scene.Place(site, layer, head), about


def _answer(ask: Callable[[Asked], Data]) -> Callable[..., Any]:
    """A route that answers in JSON, whatever goes wrong."""

    @Request.application
    def route(request: Request) -> Response:
        try:
            data, code = ask(request.args), 200
        except NotThere as error:
            data, code = {"error": str(error)}, 404
        except UserError as error:
            data, code = {"error": str(error)}, 400
        except Exception as error:
            tb_logging.get_logger().exception("qkv could not answer %s", request.full_path)
            data, code = {"error": f"this cannot be shown: {type(error).__name__}, {error}"}, 500
        text = json.dumps(data, allow_nan=False, separators=(",", ":"))
        return http_util.Respond(request, text, "application/json", code)

    return route


def _file(name: str, kind: str) -> Callable[..., Any]:
    @Request.application
    def route(request: Request) -> Response:
        return http_util.Respond(request, (WEB / name).read_bytes(), kind)

    return route


def _page(name: str) -> Callable[..., Any]:
    """A view as a page of its own."""

    @Request.application
    def route(_: Request) -> Response:
        headers = {
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-cache",
        }
        content = (WEB / f"{name}.html").read_bytes()
        return Response(content, headers=headers, mimetype="text/html")

    return route


@Request.application
def _plotly(request: Request) -> Response:
    """Plotly's script, from its Python package."""
    return http_util.Respond(request, plotly(), "text/javascript", expires=86400)
