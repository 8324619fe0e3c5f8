schemes = []


def register_rendezvous_handler(scheme, handler):
    schemes.append(scheme)
