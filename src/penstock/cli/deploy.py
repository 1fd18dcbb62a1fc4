"""`penstock deploy`: manifests, commands and an image for clusters."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Group, Parameter

from penstock.cli.options import Files
from penstock.cli.printing import print_warnings

if TYPE_CHECKING:
    from penstock.deploy.executors import Executors
    from penstock.deploy.project import Project

deploy = App(
    name="deploy",
    help_format="plaintext",
    group_commands=Group("Commands"),
    default_parameter=Parameter(negative=(), show_default=False),
    help="""Print what a cluster needs to run a pipeline: manifests, commands or an image.

The files are read as by penstock check, without Spark and without a connection to the cluster.
Variables of the files need no value. Secrets are references: no value of a variable is printed.

  penstock deploy k8s shop.yaml --image registry.example.com/penstock:1
  penstock deploy standalone shop.yaml
  penstock deploy image shop.yaml > Dockerfile""",
)

Number = Annotated[
    int | None, Parameter(name="--executors", metavar="N", help="Number of executors; default 2.")
]
Cores = Annotated[
    int | None, Parameter(metavar="N", help="Cores, and so tasks at once, of each; default 1.")
]
Memory = Annotated[
    str | None, Parameter(metavar="SIZE", help="Heap of each executor; 2g by default.")
]
State = Annotated[
    str | None,
    Parameter(metavar="PATH", help="State directory that all machines share."),
]
Archive = Annotated[
    bool,
    Parameter(help="Send the Python packages as an archive, for machines without Penstock."),
]


@deploy.command
def k8s(
    files: Files,
    /,
    *,
    image: Annotated[
        str | None, Parameter(metavar="IMAGE", help="Image of the driver and the executors.")
    ] = None,
    namespace: Annotated[
        str,
        Parameter(
            metavar="NS", help="Namespace of the objects, which must exist; 'default' if not given."
        ),
    ] = "default",
    name: Annotated[
        str | None,
        Parameter(metavar="NAME", help="Name of the objects; by default the pipeline's."),
    ] = None,
    number: Annotated[
        int | None,
        Parameter(
            name="--executors",
            metavar="N",
            help="Number of executors; default 2. With 0 the driver runs the tasks.",
        ),
    ] = None,
    cores: Cores = None,
    memory: Memory = None,
    apply: Annotated[bool, Parameter(help="Apply the manifests with kubectl.")] = False,
) -> None:
    """Print the manifests of a pipeline for Kubernetes, or apply them.

    The objects are a StatefulSet of one driver with a claim of its state, a headless Service, a
    Service of the sources and sinks that listen, a ServiceAccount with access to pods only, and
    config maps of the files and the settings. The first lines are a command that creates the Secret
    of the variables.

    With --executors 0 one pod runs the pipeline by a local master, and its account has no access.
    The cores and the heap are then those of the driver. Their defaults are those of runtime.master,
    as local[N], and of runtime.memory.

      penstock deploy k8s shop.yaml --image registry.example.com/penstock:1 > shop-k8s.yaml
      penstock deploy k8s shop.yaml --executors 4 --cores 2 --memory 4g --namespace streams
      penstock deploy k8s shop.yaml --executors 0 --memory 1g
      penstock deploy k8s shop.yaml --image registry.example.com/penstock:1 --apply
    """
    from penstock.deploy.executors import is_one_pod, no_executors
    from penstock.deploy.image.dockerfile import DEFAULT_IMAGE
    from penstock.deploy.kubernetes.deployment import Deployment
    from penstock.deploy.kubernetes.kubectl import apply_manifests, require_kubectl
    from penstock.deploy.kubernetes.listeners import address_warnings
    from penstock.deploy.kubernetes.manifests import notes, to_yaml
    from penstock.deploy.kubernetes.names import (
        check_image,
        check_name,
        check_namespace,
        object_name,
    )
    from penstock.deploy.project import read_project

    if name is not None:
        check_name(name)
    check_namespace(namespace)
    check_image(image or DEFAULT_IMAGE)
    if apply:
        require_kubectl()
    if is_one_pod(number):
        project = read_project(files, os.environ, local=True)
        executors = no_executors(project.plan.spec.runtime, cores, memory)
    else:
        project, executors = _read(files, number, cores, memory)
    chosen = name or object_name(project.plan.name)
    deployment = Deployment(project, chosen, namespace, image or DEFAULT_IMAGE, executors)
    text = to_yaml(deployment)
    print_warnings([*project.warnings, *address_warnings(deployment.listeners)])
    if not apply:
        print(text, end="")
        return
    for note in notes(deployment):
        print(note, file=sys.stderr)
    apply_manifests(text)


@deploy.command
def standalone(
    files: Files,
    /,
    *,
    master: Annotated[
        str | None, Parameter(metavar="URL", help="Master, as spark://host:7077.")
    ] = None,
    state: State = None,
    number: Number = None,
    cores: Cores = None,
    memory: Memory = None,
    archive: Archive = False,
) -> None:
    """Print the commands that run a pipeline on a standalone cluster of Spark.

    penstock deploy standalone shop.yaml
    penstock deploy standalone shop.yaml --master spark://node-1:7077 --state /nfs/penstock
    penstock deploy standalone shop.yaml --archive > run.sh
    """
    from penstock.deploy.commands import Options, standalone_commands

    project, executors = _read(files, number, cores, memory)
    options = Options(executors, master=master, state=state, archive=archive)
    lines = list(standalone_commands(project, files, options))
    print_warnings(project.warnings)
    for line in lines:
        print(line)


@deploy.command
def yarn(
    files: Files,
    /,
    *,
    state: State = None,
    number: Number = None,
    cores: Cores = None,
    memory: Memory = None,
    archive: Archive = False,
    java_home: Annotated[
        str | None, Parameter(metavar="PATH", help="Java 17 or later on the nodes of the cluster.")
    ] = None,
) -> None:
    """Print the commands that run a pipeline on YARN, from an edge node.

    penstock deploy yarn shop.yaml --archive
    penstock deploy yarn shop.yaml --state /nfs/penstock --java-home /usr/lib/jvm/java-17
    """
    from penstock.deploy.commands import Options, yarn_commands

    project, executors = _read(files, number, cores, memory)
    print_warnings(project.warnings)
    options = Options(executors, state=state, archive=archive, java_home=java_home)
    for line in yarn_commands(project, files, options):
        print(line)


@deploy.command
def image(files: Files = (), /) -> None:  # type: ignore[assignment]
    """Print the Dockerfile of an image for drivers and executors.

    With files the image has the client libraries of their connectors. The image is built from the
    wheel of Penstock in the directory dist.

      penstock deploy image > Dockerfile
      penstock deploy image shop.yaml > Dockerfile
    """
    from penstock.deploy.extras import extras
    from penstock.deploy.image.dockerfile import dockerfile
    from penstock.deploy.project import read_project

    found = extras(read_project(files, os.environ, local=True).plan) if files else []
    print(dockerfile(found), end="")


def _read(
    files: Sequence[Path], number: int | None, cores: int | None, memory: str | None
) -> tuple[Project, Executors]:
    """Returns the project of files, and the executors of the options and of the files."""
    from penstock.deploy.executors import choose_executors
    from penstock.deploy.project import read_project

    project = read_project(files, os.environ)
    return project, choose_executors(project.plan.spec.runtime, number, cores, memory)
