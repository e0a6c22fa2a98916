"""The native codec. Everything else about the package is in pyproject.toml.

The extension is optional: without a C compiler or Python's headers the build goes on, and the pure
Python twin serves.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "kraftlog._codec_native",
            sources=[
                "kraftlog/_codec_native.c",
                "kraftlog/_native_arrow.c",
                "kraftlog/_native_block.c",
                "kraftlog/_native_compaction.c",
                "kraftlog/_native_decode.c",
                "kraftlog/_native_encode.c",
                "kraftlog/_native_encode_arrow.c",
                "kraftlog/_native_murmur2.c",
            ],
            depends=["kraftlog/_native.h"],
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
            optional=True,
        )
    ]
)
