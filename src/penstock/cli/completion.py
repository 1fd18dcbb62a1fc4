"""`penstock completion`: shell completion."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

Shell = Literal["bash", "zsh", "fish"]
Install = Annotated[
    bool, Parameter(help="Write the script to the completion directory of the shell.")
]


def completion(shell: Shell, /, *, install: Install = False) -> None:
    """Print the completion script of a shell.

    penstock completion bash > ~/.local/share/bash-completion/completions/penstock
    penstock completion zsh --install
    """
    from penstock.cli.main import make_app

    app = make_app()
    if not install:
        print(app.generate_completion(shell=shell))
        return
    path = app.install_completion(shell=shell, add_to_startup=False)
    print(f"wrote {path}; restart the shell to activate the completion")
    if shell == "zsh":
        print(f"add to ~/.zshrc before compinit: fpath=({path.parent} $fpath)")
