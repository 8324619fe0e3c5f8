"""`pip install DIR` without a network: makes a wheel of the installed package, as PEP 517 says."""
import os
import zipfile

here = os.path.dirname(os.path.abspath(__file__))


def build_wheel(folder, config_settings=None, metadata_directory=None):
    metadata = next(name for name in os.listdir(here) if name.endswith(".dist-info"))
    wheel = metadata.replace(".dist-info", "-py3-none-any.whl")
    record = metadata + "/RECORD"
    files = {metadata + "/WHEEL": "Wheel-Version: 1.0\nGenerator: zero\nRoot-Is-Purelib: true\n"
                                  "Tag: py3-none-any\n"}
    for part in ("zero_torch", metadata):
        for name in sorted(os.listdir(os.path.join(here, part))):
            if name != "__pycache__":
                with open(os.path.join(here, part, name)) as file:
                    files[f"{part}/{name}"] = file.read()
    # The copy lies elsewhere, the library does not.
    place = {}
    exec(files["zero_torch/place.py"], place)
    place["library"] = os.path.normpath(os.path.join(here, "zero_torch", place["library"]))
    files["zero_torch/place.py"] = "".join(f"{k} = {place[k]!r}\n" for k in ("version", "library"))
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel
