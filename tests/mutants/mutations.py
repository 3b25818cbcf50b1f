"""The single changes of a module: where they are, and what the module looks like with one of them.

Texts, types, checks (`assert`, `raise`, `zip(strict=True)`) and what only people read (`__str__`, messages) are left
alone. Numbers up to ten become the next one; larger ones are doubled, because they are limits, sizes and times in ms
that no rule distinguishes from their neighbour (60,000 ms and 60,001).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}
_FUNCTIONS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}

# Larger numbers are doubled.
_LARGEST_COUNTED: Final = 10

# A statement with a table in it can be longer than a page.
_LONGEST_CODE: Final = 160


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one module.

    Attributes:
        number: Its place among the module's changes.
        line: Line in the module.
        lines: First and last line of its statement, for a block of its head.
        function: The function it is in, dotted; outside of functions the class or the name that is assigned.
        change: What is changed, as text: "Lt to LtE"; "1 to 2, 2nd" where the statement has two such places.
        code: The first line of the statement before, cut to 160 characters.
    """

    number: int
    line: int
    lines: tuple[int, int]
    function: str
    change: str
    code: str


def mutations_of(source: str) -> list[Mutation]:
    """All changes of a module but those that only types, texts and docs see, in the order of its syntax tree.

    Args:
        source: The module.
    """
    walk = _Walk(apply=None)
    walk.visit(ast.parse(source))
    return walk.found


def mutated(source: str, number: int) -> str:
    """The module with one of its changes; comments are lost.

    Args:
        source: The module.
        number: As in `Mutation`.
    """
    tree = _Walk(apply=number).visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Walk(ast.NodeTransformer):
    """Numbers the changes of a tree, and makes the one that is asked for."""

    def __init__(self, apply: int | None) -> None:
        self.found: list[Mutation] = []
        self._apply = apply
        self._inside: list[str] = []
        self._statements: list[ast.stmt] = []
        self._same: Counter[tuple[str, str, str]] = Counter()

    def _make(self, node: ast.AST, change: str) -> bool:
        """Number a change; whether it is the one to make."""
        number = len(self.found)
        statement = self._statements[-1]
        function = ".".join(self._inside) or _assigned(statement)
        code = ast.unparse(statement).split("\n")[0][:_LONGEST_CODE]
        self._same[function, change, code] += 1
        if (times := self._same[function, change, code]) > 1:
            change = f"{change}, {times}{'nd' if times == 2 else 'rd' if times == 3 else 'th'}"
        self.found.append(Mutation(number, getattr(node, "lineno", 0), _lines(statement), function, change, code))
        return number == self._apply

    def visit(self, node: ast.AST) -> Any:  # what is in a node may be of any kind
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        self._statements.append(node)
        visited = super().visit(node)
        self._statements.pop()
        return visited

    def _named(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        if node.name in {"__str__", "__repr__"}:
            return node
        self._inside.append(node.name)
        node.body = [kept for statement in node.body for kept in self._kept(self.visit(statement))]
        if isinstance(node, ast.FunctionDef):
            node.args.defaults = [self.visit(default) for default in node.args.defaults]
        self._inside.pop()
        return node

    @staticmethod
    def _kept(visited: ast.AST | None) -> Iterator[ast.stmt]:
        if isinstance(visited, ast.stmt):
            yield visited

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._named(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._named(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node  # a statement about types, mostly

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if isinstance(target, ast.Name) and (target.id == "__all__" or target.id in {"message", "reason", "detail"}):
            return node
        self.generic_visit(node)
        if isinstance(target, ast.Attribute | ast.Subscript) and self._make(node, "left out"):
            return ast.copy_location(ast.Pass(), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Pass(), node) if self._make(node, "left out") else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if not isinstance(node.value, ast.Call):
            return node  # a docstring
        self.generic_visit(node)
        return ast.copy_location(ast.Pass(), node) if self._make(node, "left out") else node

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return ast.copy_location(ast.Break(), node) if self._make(node, "continue to break") else node

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        return ast.copy_location(ast.Pass(), node) if self._make(node, "left out") else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for at, operator in enumerate(node.ops):
            other = _COMPARISONS[type(operator)]
            if self._make(node, f"{type(operator).__name__} to {other.__name__}"):
                node.ops[at] = other()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._make(node, "and to or" if isinstance(node.op, ast.And) else "or to and"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and self._make(node, "not left out"):
            return node.operand
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = _OPERATORS.get(type(node.op))
        text = any(
            isinstance(side, ast.JoinedStr | ast.Constant) and _is_text(side) for side in (node.left, node.right)
        )
        if other is not None and not text and self._make(node, f"{type(node.op).__name__} to {other.__name__}"):
            node.op = other()
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return node if node.arg == "strict" else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            other = _FUNCTIONS[node.func.id]
            if self._make(node, f"{node.func.id} to {other}"):
                node.func = ast.Name(other, ast.Load())
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool):
            return ast.Constant(not node.value) if self._make(node, f"{node.value} to {not node.value}") else node
        if not isinstance(node.value, int):
            return node
        other = node.value + 1 if node.value <= _LARGEST_COUNTED else 2 * node.value
        return ast.Constant(other) if self._make(node, f"{node.value} to {other}") else node


def _lines(statement: ast.stmt) -> tuple[int, int]:
    body: list[ast.stmt] = getattr(statement, "body", [])
    last = body[0].lineno - 1 if body else statement.end_lineno or 0
    return statement.lineno, max(statement.lineno, last)


def _assigned(statement: ast.stmt) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
