"""Numbers and options that stay on one line, indices that are set low, decisions that are links, cells with room for words: for every page."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

# 1.2e-3; 1e-4 … 2e-2; 0.117 ± 0.002; 19 881; 5 s; 95 %: a line break inside of these is hard to read
_REAL = r"\d[\d.]*(?:e[-−+]?\d+)?"
NUMBER = re.compile(
    rf"(?<![\w.]){_REAL} […±] {_REAL}(?!\w)"
    r"|(?<![\w.])\d[\d.]*e[-−+]?\d+"
    r"|(?<![\w.])\d{1,3}(?: \d{3})+(?!\d)(?: (?:%|nodes\b|s\b|MB\b|GB\b))?"
    r"|(?<![\w.])\d[\d.]* (?:%|×|s|ms|µs|kB|MB|GB|MiB|GiB)(?![\w])"
)
DECISION = re.compile(r"\b[Dd]ecision (\d{3})\b")
# u_xx, A_k, T_{k+1}, e^{-r} in text; names of code, such as n_modes, have longer words on both sides
LOW = re.compile(
    r"(?:(?<=(?<!\w)[A-Za-zΑ-Ωα-ωûℓ‖])|(?<=(?<!\w)[α-ω][a-z]))"
    r"_(?:(?:\d?[xyztμqkjilfprhdvLAFQ]{1,2}|min|max|\d)(?![A-Za-z0-9_])|\{[^{}]+\})"
)
HIGH = re.compile(r"(?<=[A-Za-z)])\^\{[^{}]+\}|(?<=[0-9a-z])\^\d+(?:\.\d+)?(?![\w/(])")
_WHOLE = 26  # letters of a word of code that is kept whole, in the narrowest column
_ALL = re.compile(
    rf"(?P<decision>{DECISION.pattern})|(?P<number>{NUMBER.pattern})|(?P<low>{LOW.pattern})|(?P<high>{HIGH.pattern})"
)
_ALONE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)


def pieces(text: str) -> list[tuple[str, str]]:
    """A text cut at its numbers, indices and decisions, each piece with what it is.

    >>> pieces("to 1e-3 in 5 s (decision 049)")
    [('text', 'to '), ('number', '1e-3'), ('text', ' in '), ('number', '5 s'), ('text', ' ('), ('decision', 'decision 049'), ('text', ')')]
    >>> pieces("u_xx + βu_t of n_modes")
    [('text', 'u'), ('low', '_xx'), ('text', ' + βu'), ('low', '_t'), ('text', ' of n_modes')]
    >>> pieces("10^6 in 0.117 ± 0.002")
    [('text', '10'), ('high', '^6'), ('text', ' in '), ('number', '0.117 ± 0.002')]
    """
    cut, end = [], 0
    for match in _ALL.finditer(text):
        cut += [("text", text[end : match.start()]), (str(match.lastgroup), match[0])]
        end = match.end()
    return [(kind, piece) for kind, piece in [*cut, ("text", text[end:])] if piece]


class Typography(SphinxPostTransform):
    """The pieces of each text as what they are."""

    default_priority = 400
    formats = ("html",)

    def run(self, **_: object) -> None:
        """Change the texts of one page."""
        documents = self.env.found_docs
        decisions = {name[10:13]: name for name in documents if re.match(r"decisions/\d{3}-", name)}
        for code in self.document.findall(nodes.literal):
            if all(len(word) <= _WHOLE for word in code.astext().split()):
                code["classes"].append("whole")
        for cell in self.document.findall(nodes.entry):
            if len(cell.astext()) > 24:
                cell["classes"].append("words")
            elif re.fullmatch(r"[\d.]+(, [\d.]+){1,3}", cell.astext()):  # 0.56, 1.29, 4.32
                cell["classes"].append("number")
        for text in list(self.document.findall(nodes.Text)):
            if self._left_alone(text) or not _ALL.search(text):
                continue
            linked = any(isinstance(parent, nodes.reference) for parent in _parents(text))
            new: list[nodes.Node] = []
            for kind, piece in pieces(str(text)):
                page = decisions.get(piece[-3:]) if kind == "decision" and not linked else None
                if page and page != self.env.docname:
                    uri = self.app.builder.get_relative_uri(self.env.docname, page)
                    new.append(nodes.reference("", piece, refuri=uri, internal=True))
                elif kind == "number":
                    new.append(nodes.inline("", piece, classes=["number"]))
                elif kind in ("low", "high"):
                    script = nodes.subscript if kind == "low" else nodes.superscript
                    new.append(script("", piece[1:].strip("{}")))
                else:
                    new.append(nodes.Text(piece))
            text.parent.replace(text, new)

    @staticmethod
    def _left_alone(text: nodes.Text) -> bool:
        # code whose names are links is no literal block, but a node of sphinx-gallery
        return any(isinstance(p, _ALONE) or p.tagname.startswith(("desc_sig", "code_links")) for p in _parents(text))


def _parents(node: nodes.Node) -> list[nodes.Element]:
    ancestors = []
    while node.parent is not None:
        node = node.parent
        ancestors.append(node)
    return ancestors


def _without_empty_end(app, doctree: nodes.document) -> None:
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext() and (text := block.astext().rstrip()) != block.astext():
            new = nodes.literal_block(text, text, **block.attributes)
            block.replace_self(new)


def setup(app):
    """For every page, after its links are known."""
    app.add_post_transform(Typography)
    app.connect("doctree-read", _without_empty_end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
