"""The public names."""

import subprocess
import sys

import opencl_lab


def test_every_public_name_is_there_and_has_a_home():
    homes = {name for names in opencl_lab._HOMES.values() for name in names}
    assert homes | {"__version__", *opencl_lab._MODULES} == set(opencl_lab.__all__)
    for name in opencl_lab.__all__:
        assert getattr(opencl_lab, name) is not None
    assert dir(opencl_lab) == sorted(opencl_lab.__all__)


def test_functions_are_not_hidden_by_packages():
    import opencl_lab.comparison.runner

    assert callable(opencl_lab.compare) and callable(opencl_lab.sort)
    assert opencl_lab.compare is opencl_lab.comparison.runner.compare


def test_importing_the_package_does_not_import_opencl():
    code = "import sys, opencl_lab; sys.exit('pyopencl' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_names_are_attribute_errors():
    assert not hasattr(opencl_lab, "no_such_name")
