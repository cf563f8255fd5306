"""A kernel that is not ours, to see what the proof kit makes of a stranger.

It was written from docs/spec/kernel.md alone and shares no line and no idea with the kernel of this
package: objects that change in place, one for each call, turn and grant; refusals that are raised;
effects in a ledger that is kept up to date; recovery by a reader of the journal that is a second
path through everything. The comments at the ends of lines name the rules that a line holds (`S5` is
section 5 of kernel.md): tests/foreign reads them to tell which rules a bug there may break.
"""
