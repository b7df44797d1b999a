"""HOW GOOD: figures of solutions, errors and nodes."""

from parasol.study.canvas import INK as INK
from parasol.study.canvas import View as View
from parasol.study.canvas import clock as clock
from parasol.study.canvas import colour_bar as colour_bar
from parasol.study.canvas import colours as colours
from parasol.study.canvas import frame as frame
from parasol.study.canvas import map_size as map_size
from parasol.study.canvas import outline as outline
from parasol.study.canvas import require_matplotlib as require_matplotlib
from parasol.study.canvas import title as title
from parasol.study.canvas import views as views
from parasol.study.facts import Facts as Facts
from parasol.study.facts import machine_facts as machine_facts
from parasol.study.figures import FIGURE_SUFFIXES as FIGURE_SUFFIXES
from parasol.study.outputs import write_json as write_json
