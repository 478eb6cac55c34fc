"""Formulas as MathML, which browsers draw themselves: no script, no fonts, nothing from the network."""

import re

from latex2mathml.converter import convert


def setup(app):
    """Make MathML the way in which formulas are written to HTML."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator, node):
    translator.body.append(convert(node.astext()))
    _skip()


def _block(translator, node):
    formula, *tag = re.split(r"\\tag\{([^}]*)\}", re.sub(r"\\label\{[^}]*\}", "", node.astext()))
    number = f'<span class="number">({tag[0]})</span>' if tag else ""
    translator.body.append(
        f'<div class="formula">{convert(formula.strip(), display="block")}{number}</div>\n'
    )
    _skip()


def _skip():
    from docutils.nodes import SkipNode

    raise SkipNode
