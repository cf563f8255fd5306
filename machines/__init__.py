"""The machinery that declared tables share: their form, their proof and their interchange."""
