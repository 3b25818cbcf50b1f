"""Several probes on one cluster: one makes the rounds, the others stand by. They agree by the rounds topic.

Each record of that topic reaches every probe in the same order, so it is the only thing that two probes share. A
**run** is a series of rounds that one probe makes one after the other. Its number is that of its first round, and each
opening record says it (`since`). Three rules follow (`others.py`; `turn.py` applies them):

1. Before its first round a probe reads the newest records. Where another one makes rounds, it stands by.
2. If two runs go on at the same time, the one with the lower number stays. The probe of the other sees that right
   after its opening record: it closes no round, says that its run has ended (`ends`), and stands by.
3. A probe that stands by takes over when the other one says that it has ended, or has closed no round for a while
   (`patience_s`). How long that is says its own steady clock, never two clocks compared.

So two probes can both close rounds only for a moment: when one is taken for dead that lives, until its next round.
"""
