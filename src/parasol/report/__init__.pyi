"""What a person reads: figures of solutions, errors and nodes, tables, the error budget."""

from parasol.report.budget.figure import draw_budget as draw_budget
from parasol.report.canvas import INK as INK
from parasol.report.canvas import View as View
from parasol.report.canvas import clock as clock
from parasol.report.canvas import colour_bar as colour_bar
from parasol.report.canvas import colours as colours
from parasol.report.canvas import frame as frame
from parasol.report.canvas import map_size as map_size
from parasol.report.canvas import outline as outline
from parasol.report.canvas import require_matplotlib as require_matplotlib
from parasol.report.canvas import title as title
from parasol.report.canvas import views as views
from parasol.report.figures import FIGURE_SUFFIXES as FIGURE_SUFFIXES
from parasol.report.figures import draw_nodes as draw_nodes
from parasol.report.render import Facts as Facts
from parasol.report.render import machine_facts as machine_facts
from parasol.report.render import write_json as write_json
from parasol.report.spectra import draw_spectrum as draw_spectrum
from parasol.report.verify import Finding as Finding
from parasol.report.verify import Verification as Verification
