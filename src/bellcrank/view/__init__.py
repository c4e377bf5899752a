"""Pictures of machines: a neutral scene, and what draws it: a page for browsers, films and stills, notebooks."""
