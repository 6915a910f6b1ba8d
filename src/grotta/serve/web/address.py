"""What an address names: the service behind it, and the model in it."""

from fastapi import Request

from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused
from grotta.serve.service import Service

VERSION = "1"


def service_of(request: Request) -> Service:
    """The service behind the application."""
    service: Service = request.app.state.service
    return service


def model_of(request: Request) -> ServedModel:
    """The model in the address, or 404."""
    name = request.path_params["model"]
    if request.path_params.get("version", VERSION) != VERSION:
        raise Refused(404, f"model {name[:64]!r} has version {VERSION} only")
    model = service_of(request).models.get(name)
    if model is None:
        raise Refused(404, f"no model {name[:64]!r}; there are {', '.join(service_of(request).models)}")
    return model
