"""The YAML front end: YAML files, includes, variables and overrides to data with locations."""

from penstock.spec.yaml.front_end import YamlFrontEnd

__all__ = ["YamlFrontEnd"]
