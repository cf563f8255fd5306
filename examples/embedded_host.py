"""A whole host: journal, recovery, snapshot, threads. docs/embedding.md goes through it."""

import sqlite3
import time
from collections.abc import Callable
from threading import Lock, Thread

import turnlock as tl


class Host:
    """Performs one run: `tool` does what an Execute asks, `tell` gives results to the model."""

    def __init__(self, path: str, run: tl.Run, tool: Callable, tell: Callable) -> None:
        """Go on where the journal ends. Whoever ran a tool then is dead."""
        self.tool, self.tell, self.lock = tool, tell, Lock()
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.db.executescript("""PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;
            CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, fact);
            CREATE TABLE IF NOT EXISTS saved (id INTEGER PRIMARY KEY, snapshot); COMMIT""")
        last, saved = self.db.execute("SELECT max(id), snapshot FROM saved").fetchone()
        snapshot = tl.snapshot_from_json(saved) if saved else None
        rows = self.db.execute("SELECT fact FROM log WHERE id > ? ORDER BY id", (last or 0,))
        facts = [tl.fact_from_json(fact) for (fact,) in rows]
        self.kernel = tl.Kernel.recover(run, facts, snapshot=snapshot)
        for effect in self.kernel.pending_effects:
            Thread(target=self._perform, args=(effect,), daemon=True).start()
        for f in (f for f in facts if isinstance(f, tl.ToolExecutionStarted | tl.ExecutionRetried)):
            self.send(tl.Lose(turn_id=f.turn_id, invocation_id=f.invocation_id, attempt=f.attempt))

    def send(self, delivery: tl.Delivery) -> tl.Verdict:
        """Have a delivery judged, its facts kept, and only then its effects performed."""
        self.lock.acquire()  # and released only if the facts were kept
        with self.db:
            said = self.kernel.receive(delivery, time.time())
            self.db.executemany("INSERT INTO log(fact) VALUES(?)", zip(map(tl.to_json, said.facts)))
        self.lock.release()
        for effect in said.effects:
            Thread(target=self._perform, args=(effect,), daemon=True).start()
        return said

    def _perform(self, it: tl.Effect) -> None:
        if isinstance(it, tl.Execute):
            at = {"turn_id": it.turn_id, "invocation_id": it.invocation_id, "attempt": it.attempt}
            if self.send(tl.Claim(**at)).accepted:
                try:
                    report = tl.Report(**at, result=self.tool(it))
                except Exception as error:  # noqa: BLE001 - a tool may raise anything
                    report = tl.Report(**at, error=repr(error))
                self.send(report)
        elif isinstance(it, tl.Continue):
            self.tell(it)
            self.send(tl.Acknowledge(turn_id=it.turn_id))
            with self.lock, self.db:
                if (s := self.kernel.snapshot()).turn is None:
                    self.db.execute("REPLACE INTO saved VALUES (?, ?)", (s.sequence, tl.to_json(s)))
        elif isinstance(it, tl.Wake):
            time.sleep(max(0.0, it.at - time.time()))
            self.send(tl.Tick())
