"""The command ``bellcrank``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bellcrank.cli.output import Application, Output
from bellcrank.cli.output import examples as lines

__all__ = ["app", "main"]

_HELP = """Dynamics of machines made of linked bodies.

MODEL is a model file (.yaml, .json, .urdf, .sdf, .xml) or the name of a built-in machine (see `bellcrank examples`).

\b
Exit codes:
  0    fine
  1    the machine or the run failed
  2    wrong usage
  3    a file could not be read or written
  130  interrupted; what was computed until then is written
"""

app = typer.Typer(name="bellcrank", cls=Application, help=_HELP, add_completion=False, rich_markup_mode=None,
                  pretty_exceptions_enable=False, epilog=lines(
                      "bellcrank simulate four_bar --set A=0.5 --duration 5 --plot run.png",
                      "bellcrank COMMAND --help"))

Model = Annotated[str, typer.Argument(
    metavar="MODEL", help="a model file (.yaml, .json, .urdf, .sdf, .xml) or the name of an example")]
Floating = Annotated[bool, typer.Option("--floating-base", help="let the root link of a URDF float")]
Options = Annotated[list[str] | None, typer.Option(
    "--option", metavar="NAME=VALUE", help="an option of the example or reader, such as cells=16; may be repeated")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object, for machines")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print errors only")]
Bar = Annotated[bool, typer.Option("--progress/--no-progress", help="a bar, on a terminal, after a second")]


def _version(wanted: bool) -> None:
    if wanted:
        from bellcrank import __version__

        typer.echo(f"bellcrank {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _program(context: typer.Context,
             debug: Annotated[bool, typer.Option("--debug", help="show tracebacks of errors")] = False,
             version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True,
                                                   help="print the version and exit")] = False) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(short_help="Simulate a machine and write the motion", epilog=lines(
    "bellcrank simulate four_bar --set A=0.5 --set u:A=2 --duration 5",
    "bellcrank simulate quarter_car --stepper radau --step 0.01 --out run.nc --plot run.png",
    "bellcrank simulate ladder --option cells=16 --set arm0=0.6,0.4 --stepper dop853 --rtol 1e-10",
    "bellcrank simulate robot.urdf --floating-base --method momenta --json"))
def simulate(model: Model,
             duration: Annotated[float, typer.Option(help="seconds to simulate")] = 10.0,
             step: Annotated[float | None, typer.Option(
                 help="time step [s] of fixed-step methods (1 ms), first step of adaptive ones")] = None,
             stepper: Annotated[str, typer.Option(
                 help="method of integration: rk4, rk8, semi_implicit, gauss, radau, moreau; adaptive: dopri5, "
                      "dop853, radau5, scipy/NAME, sundials/NAME")] = "rk4",
             method: Annotated[str, typer.Option(
                 help="formulation of the equations of motion: recursive, elimination, momenta, ...")] = "auto",
             closing: Annotated[str, typer.Option(
                 help="what steps close of the loops: position (and velocity), velocity, none")] = "position",
             interval: Annotated[float | None, typer.Option(
                 "--output", help="time between samples [s]; about 1000 samples otherwise")] = None,
             settings: Annotated[list[str] | None, typer.Option(
                 "--set", metavar="NAME=VALUE",
                 help="q:JOINT=0.5 holds a coordinate at the start, u:JOINT=1 a speed, p:NAME=2 sets a parameter; "
                      "JOINT=0.5 is q:JOINT=0.5; several numbers with commas; may be repeated")] = None,
             keyframe: Annotated[str | None, typer.Option(
                 metavar="NAME", help="start at this keyframe of an MJCF file, loops closed from there; its speeds "
                                      "hold unless --set gives some")] = None,
             option: Options = None, floating_base: Floating = False,
             out: Annotated[Path | None, typer.Option(
                 help="write to this file: NetCDF (.nc) while it runs, or CSV (.csv) at the end")] = None,
             picture: Annotated[Path | None, typer.Option("--plot", help="draw coordinates and energies into this file "
                                                                         "(.png, .svg, .pdf)")] = None,
             rtol: Annotated[float, typer.Option(help="relative tolerance of adaptive methods")] = 1e-9,
             atol: Annotated[float, typer.Option(help="absolute tolerance of adaptive methods")] = 1e-12,
             quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Simulate a machine from its neutral position, from a keyframe, or from what --set holds.

    Loops are closed first, with as little motion as possible, and stay closed. Ctrl-C ends the run; what was computed
    until then is written. The energy drift is an error where nothing does work; dampers and drives do.
    """
    from bellcrank.cli.simulation import Request
    from bellcrank.cli.simulation import simulate as run

    request = Request(model, duration, step, stepper, method, interval, settings or (), keyframe, option or (),
                      floating_base, out, picture, rtol, atol, closing)
    raise typer.Exit(run(request, Output(json, quiet, progress)))


@app.command(short_help="Run a machine many times", epilog=lines(
    "bellcrank sweep machine.yaml --vary load=1:5:100 --sample 'mass~normal(2,0.1)' --runs 100000 --out study.zarr",
    "bellcrank sweep quarter_car --option parameters=true --sample 'stiffness~normal(25000,2500)' --runs 1000 "
    "--set q.arm=-0.1",
    "bellcrank sweep pendulum --vary q.hinge=0.1:3:30 --reduce last --reduce max",
    "bellcrank sweep machine.yaml --sample 'mass~uniform(1,3)' --runs 5000 --out study.zarr --resume --executor dask"))
def sweep(model: Model,
          vary: Annotated[list[str] | None, typer.Option(
              metavar="NAME=VALUES", help="a grid: FIRST:LAST:COUNT or numbers with commas, of a parameter, or of "
                                          "q.JOINT or u.JOINT at the beginning; may be repeated")] = None,
          sample: Annotated[list[str] | None, typer.Option(
              metavar="NAME~DISTRIBUTION", help="random values: normal(mean,deviation), uniform(low,high), "
                                                "lognormal(...), or one of scipy.stats; may be repeated")] = None,
          runs: Annotated[int | None, typer.Option(
              help="runs in all; with --vary as many of them at every point of the grid")] = None,
          method: Annotated[str, typer.Option(help="how samples are drawn: lhs, sobol, random")] = "lhs",
          seed: Annotated[int, typer.Option(help="of the samples")] = 0,
          duration: Annotated[float, typer.Option(help="seconds to simulate")] = 10.0,
          step: Annotated[float | None, typer.Option(help="time step [s]")] = None,
          stepper: Annotated[str, typer.Option(help="method of integration, as of `simulate`")] = "rk4",
          interval: Annotated[float | None, typer.Option("--output", help="time between samples [s]")] = None,
          settings: Annotated[list[str] | None, typer.Option(
              "--set", metavar="NAME=VALUE", help="the beginning of all runs: q.JOINT=0.5, u.JOINT=1; p:NAME=2 sets a "
                                                  "parameter; may be repeated")] = None,
          reduce: Annotated[list[str] | None, typer.Option(
              help="keep this of every variable over time: first, last, min, max, mean, std; may be repeated")] = None,
          out: Annotated[Path | None, typer.Option(help="a Zarr store (.zarr), written while it runs, or .nc")] = None,
          resume: Annotated[bool, typer.Option("--resume", help="go on with the store where it stopped")] = False,
          chunk: Annotated[int | None, typer.Option(help="runs in one task")] = None,
          executor: Annotated[str, typer.Option(help="threads, processes or dask")] = "threads",
          address: Annotated[str | None, typer.Option(
              help="of the Dask scheduler, such as tcp://host:8786; processes of this machine otherwise")] = None,
          backend: Annotated[str | None, typer.Option(help="cuda: on GPUs, where workers have them")] = None,
          formulation: Annotated[str, typer.Option(help="formulation of the equations of motion")] = "auto",
          option: Options = None, floating_base: Floating = False,
          quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Run a machine with many values of its parameters, or from many beginnings.

    Without --out, the last values of every run are kept, and what they are over all runs is printed. A sweep with
    --out that was interrupted or killed goes on with --resume and the same arguments.
    """
    from bellcrank.cli.simulation import StudyRequest
    from bellcrank.cli.simulation import sweep as run

    request = StudyRequest(model, vary or (), sample or (), runs, method, seed, duration, step, stepper, interval,
                           settings or (), reduce or (), out, resume, chunk, executor, address, formulation,
                           option or (), floating_base, backend)
    raise typer.Exit(run(request, Output(json, quiet, progress)))


@app.command(short_help="Bodies, joints, loops, mobility", epilog=lines(
    "bellcrank inspect four_bar", "bellcrank inspect four_bar --cut B",
    "bellcrank inspect ladder --option cells=3 --json"))
def inspect(model: Model, option: Options = None, floating_base: Floating = False,
            cut: Annotated[list[str] | None, typer.Option(help="a joint to cut; may be repeated")] = None,
            quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Print bodies, joints, loops, mobility, redundant constraints, cuts and independent speeds."""
    from bellcrank.cli.machines import inspect as run

    raise typer.Exit(run(model, option or (), floating_base, cut or (), Output(json, quiet, progress)))


@app.command(short_help="A model file in another format", epilog=lines(
    "bellcrank convert robot.urdf robot.yaml", "bellcrank convert four_bar four_bar.json",
    "bellcrank convert machine.yaml machine.sdf --json",
    "bellcrank convert four_bar four_bar.urdf --write-option loops=loop_joint --write-option drop_gravity=true"))
def convert(source: Annotated[str, typer.Argument(metavar="IN", help="a model file or the name of an example")],
            target: Annotated[Path, typer.Argument(
                metavar="OUT", help="the file to write; its ending says the format")],
            option: Options = None, floating_base: Floating = False,
            write_option: Annotated[list[str] | None, typer.Option(
                "--write-option", metavar="NAME=VALUE",
                help="an option of the writer, such as loops=loop_joint for .urdf; may be repeated")] = None,
            quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Write a machine in another format: .yaml, .yml or .json (which hold all of it), .urdf, .sdf, .xml (MJCF).

    Prints what was read, changed, ignored and not written. Nothing is written if the format cannot hold the machine.
    """
    from bellcrank.cli.machines import convert as run

    raise typer.Exit(run(source, target, option or (), write_option or (), floating_base,
                         Output(json, quiet, progress)))


@app.command("export-c", short_help="Functions of a machine as C", epilog=lines(
    "bellcrank export-c arm --to generated", "bellcrank export-c four_bar --stepper rk4 --to generated",
    "bellcrank export-c robot.urdf --functions forward_dynamics,bias --scalar float --name robot --to generated"))
def export_c(model: Model, to: Annotated[Path, typer.Option(help="the folder for the header and the source")],
             functions: Annotated[str, typer.Option(
                 help="with commas between them: forward_dynamics, inverse_dynamics (trees), bias, mass_matrix, "
                      "momenta, hamilton")] = "forward_dynamics",
             stepper: Annotated[str | None, typer.Option(
                 help="also a step in time: rk4, rk8 or semi_implicit")] = None,
             scalar: Annotated[str, typer.Option(help="double or float")] = "double",
             name: Annotated[str | None, typer.Option(
                 help="begins all names in C, and those of the files; the machine's otherwise")] = None,
             method: Annotated[str, typer.Option(help="formulation of the equations of motion")] = "auto",
             option: Options = None, floating_base: Floating = False,
             quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Write functions of a machine as plain C99 for controllers: one header and one source.

    The code is for one state, allocates nothing and keeps nothing between calls; the header says what functions take.
    With loops it follows one plan, made for a general position (several: `bellcrank.export_c` in Python).
    """
    from bellcrank.cli.machines import export_c as run

    wanted = [f.strip() for f in functions.split(",") if f.strip()]
    raise typer.Exit(run(model, wanted, to, stepper, scalar, name, method, option or (), floating_base,
                         Output(json, quiet, progress)))


@app.command(short_help="All formulations beside each other", epilog=lines(
    "bellcrank compare arm", "bellcrank compare four_bar --states 64",
    "bellcrank compare arm --method recursive --method kane --json"))
def compare(model: Model, option: Options = None, floating_base: Floating = False,
            states: Annotated[int, typer.Option(help="states in the batch", min=1)] = 1024,
            method: Annotated[list[str] | None, typer.Option(
                help="only this formulation; may be repeated. All that apply otherwise")] = None,
            quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Print every formulation's operations, times and disagreement with the dense oracle."""
    from bellcrank.cli.machines import compare as run

    raise typer.Exit(run(model, option or (), floating_base, states, method or (), Output(json, quiet, progress)))


@app.command(short_help="List the built-in machines", epilog=lines(
    "bellcrank examples", "bellcrank examples --json"))
def examples(quiet: Quiet = False, json: Json = False) -> None:
    """List the built-in machines."""
    from bellcrank.cli.machines import examples as run

    raise typer.Exit(run(Output(json, quiet)))


@app.command(short_help="Draw a result over time", epilog=lines(
    "bellcrank plot run.nc", "bellcrank plot run.nc A u.A energy --out run.svg",
    "bellcrank plot run.nc --phase A --size column --out phase.pdf",
    "bellcrank plot run.nc reactions reaction.D udot",
    "bellcrank plot run.nc force.strut reaction.D --out forces.csv"))
def plot(file: Annotated[Path, typer.Argument(metavar="FILE", help="a result, such as `simulate --out` writes")],
         what: Annotated[list[str] | None, typer.Argument(
             metavar="WHAT", help="q, u, tau, energy, loop_error, a joint (its q), u.JOINT or tau.JOINT, an output; "
                                  "udot, reactions, reaction.JOINT, forces, force.ELEMENT, torque.JOINT")] = None,
         out: Annotated[Path | None, typer.Option(
             help="the picture; the name of FILE with .png otherwise; .csv: the same as a table")] = None,
         against: Annotated[str, typer.Option(help="draw against this instead of time")] = "time",
         phase: Annotated[list[str] | None, typer.Option(
             metavar="JOINT", help="draw the speed of a joint over its coordinate; may be repeated")] = None,
         size: Annotated[str | None, typer.Option(
             help="column (85 mm wide), page (170 mm), or WIDTHxHEIGHT in mm")] = None,
         every: Annotated[bool, typer.Option("--every", help="also lines of zeros and rounding")] = False,
         model: Annotated[str | None, typer.Option(help="the machine of the run, if its file does not say")] = None,
         option: Options = None, floating_base: Floating = False,
         quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Draw a result over time, as PNG, SVG or PDF, or write it as a table (CSV)."""
    from bellcrank.cli.simulation import PlotRequest
    from bellcrank.cli.simulation import plot as run

    request = PlotRequest(file, what or (), against, out, phase or (), size, every, model, option or (), floating_base)
    raise typer.Exit(run(request, Output(json, quiet, progress)))


@app.command(short_help="A machine in motion: a page, a film, a picture", epilog=lines(
    "bellcrank animate four_bar --set A=0.5 --set u:A=2 --out run.html",
    "bellcrank animate run.nc --trace coupler:0.5,0.2,0 --show forces --out run.mp4",
    "bellcrank animate robot.urdf --duration 0 --out robot.png --view corner --theme dark"))
def animate(what: Annotated[str, typer.Argument(
                metavar="RESULT|MODEL", help="a result (.nc), or a model file or example, which is simulated")],
            out: Annotated[Path, typer.Option(help="what to write: .html (one page, opens offline), .gif, .mp4, .png, "
                                                   ".svg")],
            model: Annotated[str | None, typer.Option(help="its machine, if the file does not say")] = None,
            duration: Annotated[float, typer.Option(help="seconds to simulate a model; 0: as it stands")] = 5.0,
            settings: Annotated[list[str] | None, typer.Option(
                "--set", metavar="NAME=VALUE", help="the beginning, as of `simulate`: JOINT=0.5, u:JOINT=1, p:NAME=2; "
                                                    "may be repeated")] = None,
            stepper: Annotated[str, typer.Option(help="method of integration, as of `simulate`")] = "rk4",
            step: Annotated[float | None, typer.Option(help="time step [s]")] = None,
            trace: Annotated[list[str] | None, typer.Option(
                metavar="BODY[:X,Y,Z]", help="draw the path of a point of a body; may be repeated")] = None,
            show: Annotated[list[str] | None, typer.Option(
                help="show at first: forces, names, axes, masses, ghosts, frames, bodyNames, symbols; may be "
                     "repeated")] = None,
            fps: Annotated[float, typer.Option(help="pictures a second of films")] = 25.0,
            speed: Annotated[float, typer.Option(help="of films; 1 is real time")] = 1.0,
            size: Annotated[str, typer.Option(help="of films and pictures, in pixels")] = "960x600",
            time: Annotated[float | None, typer.Option(help="of a picture [s]")] = None,
            theme: Annotated[str, typer.Option(help="light or dark")] = "light",
            view: Annotated[str | None, typer.Option(help="front, side, top or corner")] = None,
            renderer: Annotated[str, typer.Option(
                help="of films and pictures: browser, matplotlib, or auto: a browser if there is one")] = "auto",
            option: Options = None, floating_base: Floating = False,
            quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Show a machine in motion. The page has all controls, needs no network and can be sent to others; films and
    pictures are taken by Chromium where it is installed, else drawn by matplotlib.
    """
    from bellcrank.cli.pictures import FilmRequest
    from bellcrank.cli.pictures import animate as run

    look = {"fps": fps, "speed": speed, "size": size, "time": time, "theme": theme, "view": view,
            "renderer": renderer}
    request = FilmRequest(what, out, model, duration, settings or (), stepper, step, trace or (), show or (),
                          option or (), floating_base, look)
    raise typer.Exit(run(request, Output(json, quiet, progress)))


@app.command(short_help="A machine or result in the browser, to be moved by hand", epilog=lines(
    "bellcrank show four_bar", "bellcrank show robot.urdf --set knee=0.5", "bellcrank show run.nc",
    "bellcrank show rk4.nc radau.nc"))
def show(what: Annotated[list[str], typer.Argument(
             metavar="MODEL|RESULT...", help="a model file or example, or results (.nc), which are compared")],
         model: Annotated[str | None, typer.Option(help="their machine, if the files do not say")] = None,
         settings: Annotated[list[str] | None, typer.Option(
             "--set", metavar="NAME=VALUE", help="the position, as of `simulate`: JOINT=0.5, p:NAME=2; may be "
                                                 "repeated")] = None,
         side_by_side: Annotated[bool, typer.Option("--side-by-side", help="results beside each other")] = False,
         host: Annotated[str, typer.Option(help="who is answered: 127.0.0.1 is this computer alone, 0.0.0.0 lets "
                                                "others in who know the address")] = "127.0.0.1",
         port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free")] = 0,
         browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open the page")] = True,
         option: Options = None, floating_base: Floating = False,
         quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Show a machine in the browser: look at it, move it by its coordinates or with the mouse (loops stay closed), play
    results. The page is served on this computer alone, until Ctrl-C.
    """
    from bellcrank.cli.pictures import ShowRequest
    from bellcrank.cli.pictures import show as run

    request = ShowRequest(what, model, settings or (), side_by_side, option or (), floating_base, host, port, browser)
    raise typer.Exit(run(request, Output(json, quiet, progress)))


@app.command(short_help="List the figures and tables of the papers", epilog=lines(
    "bellcrank papers", "bellcrank papers --json", "bellcrank papers --docs docs/papers"))
def papers(docs: Annotated[Path | None, typer.Option(
               metavar="FOLDER", help="compute all of them and write one page per paper into this folder")] = None,
           short: Annotated[bool, typer.Option("--short", help="with --docs: the short form of every item")] = False,
           quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """List the figures and tables of the five papers that can be computed anew, or write the pages that show them."""
    from bellcrank.cli.machines import papers as run

    raise typer.Exit(run(docs, short, Output(json, quiet, progress)))


@app.command(short_help="Compute a figure or table of a paper anew", epilog=lines(
    "bellcrank paper kang-yoon-table-5", "bellcrank paper saha-schiehlen-fig-7 --out figures",
    "bellcrank paper anderson-critchley-fig-6 --short --json"))
def paper(item: Annotated[str, typer.Argument(metavar="ITEM", help="a name that `bellcrank papers` lists")],
          short: Annotated[bool, typer.Option("--short", help="less of it, in about a second")] = False,
          out: Annotated[Path | None, typer.Option(
              metavar="FOLDER", help="write all rows (.csv) and the picture into this folder")] = None,
          picture: Annotated[str, typer.Option("--format", help="of the picture: png, svg or pdf")] = "png",
          quiet: Quiet = False, json: Json = False, progress: Bar = True) -> None:
    """Compute a figure or table of a paper, print it, and say how far it is from what is printed there, or from an
    independent solution, and why.

    The exit code is 1 where values differ that should agree.
    """
    from bellcrank.cli.machines import paper as run

    raise typer.Exit(run(item, short, out, picture, Output(json, quiet, progress)))


@app.command(short_help="How to cite Bellcrank, or a formulation", epilog=lines(
    "bellcrank cite", "bellcrank cite recursive"))
def cite(method: Annotated[str | None, typer.Argument(help="a formulation, such as recursive or momenta; without one, "
                                                      "this software itself")] = None,
         quiet: Quiet = False, json: Json = False) -> None:
    """Print the BibTeX entry of this software, or of a formulation's source."""
    from bellcrank.cli.machines import cite as run

    raise typer.Exit(run(method, Output(json, quiet)))


def main() -> Any:
    """Run the command and end the process with its exit code."""
    return app()


if __name__ == "__main__":
    main()
