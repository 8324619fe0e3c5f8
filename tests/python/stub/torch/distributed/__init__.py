from . import rendezvous  # noqa: F401


class DistBackendError(RuntimeError):
    pass


class Work:
    pass


registered = []


class Backend:
    _plugins = {}

    @classmethod
    def register_backend(cls, name, creator, extended_api, devices):
        cls._plugins[name.upper()] = creator
        registered.extend([name, "for", *devices])
