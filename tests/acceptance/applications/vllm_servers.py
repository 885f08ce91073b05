"""`vllm serve`, whose own script needs package metadata that the wheel for CPUs lacks."""

import sys

from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser

if __name__ == "__main__":
    parser = FlexibleArgumentParser(description="serve")
    command = ServeSubcommand()
    command.subparser_init(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["serve", *sys.argv[1:]])
    command.validate(arguments)
    command.cmd(arguments)
