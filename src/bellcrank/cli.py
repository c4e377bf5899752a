"""The command ``bellcrank``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bellcrank.errors import BellcrankError

__all__ = ["app", "main"]

app = typer.Typer(help="Dynamics of machines made of linked bodies.", no_args_is_help=True, add_completion=False)

_MODEL = typer.Argument(help="a .urdf file or the name of an example")
_FLOATING = typer.Option("--floating-base", help="let the root link of a URDF float")


@app.command()
def examples() -> None:
    """List the built-in machines."""
    from bellcrank.examples import load, names

    for name in names():
        machine = load(name)
        loops = len(machine.joints) - len(machine.bodies)
        closed = f", {loops} loop{'s' * (loops > 1)}" if loops else ""
        speeds = sum(r.joint.nu for r in machine.joints)
        typer.echo(f"{name:<20}{len(machine.bodies):>3} bodies, {speeds} speeds{closed}")


@app.command()
def compare(model: Annotated[str, _MODEL], floating_base: Annotated[bool, _FLOATING] = False,
            states: Annotated[int, typer.Option(help="states in the batch", min=1)] = 1024) -> None:
    """Print every formulation's operations, times and disagreement with the dense oracle."""
    from bellcrank.analyse.compare import compare as run
    from bellcrank.io.load import load

    options = {"floating_base": True} if floating_base else {}
    typer.echo(str(run(load(model, **options), states=states)))


@app.command()
def inspect(model: Annotated[str, _MODEL], floating_base: Annotated[bool, _FLOATING] = False,
            cut: Annotated[list[str] | None, typer.Option(help="a joint to cut; may be given several times")] = None
            ) -> None:
    """Print bodies, joints, loops, mobility, redundant conditions, cuts and independent speeds."""
    from bellcrank.io.load import load
    from bellcrank.system.compile import compile

    options = {"floating_base": True} if floating_base else {}
    typer.echo(str(compile(load(model, **options), cut=cut or ()).explain()))


@app.command()
def cite(method: Annotated[str, typer.Argument(help="a formulation, such as recursive or momenta")]) -> None:
    """Print the BibTeX entry of a formulation's source."""
    from bellcrank.formulations import cite as entry

    typer.echo(entry(method))


def main() -> None:
    """Run the command; errors are one line, exit code 1."""
    try:
        app()
    except BellcrankError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
