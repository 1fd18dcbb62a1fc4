"""`penstock completion`: completion for shells."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

Shell = Literal["bash", "zsh", "fish"]
Install = Annotated[
    bool, Parameter(help="Writes it where the shell looks for it, and says where that is.")
]


def completion(shell: Shell, /, *, install: Install = False) -> None:
    """Print the script that lets a shell complete verbs and options.

    penstock completion bash > ~/.local/share/bash-completion/completions/penstock
    penstock completion zsh --install
    """
    from penstock.cli.main import make_app

    app = make_app()
    if not install:
        print(app.generate_completion(shell=shell))
        return
    path = app.install_completion(shell=shell, add_to_startup=False)
    print(f"wrote {path}; it works in shells that are started from now on")
    if shell == "zsh":
        print(f"let ~/.zshrc have it before compinit: fpath=({path.parent} $fpath)")
