"""What is kept on disk: one content hash, one atomic write, one lock."""

from parasol.cache.content import content_hash as content_hash
from parasol.cache.disk import check_output as check_output
from parasol.cache.disk import claim as claim
from parasol.cache.disk import publish as publish
from parasol.cache.disk import replacing as replacing
