------------------------------- MODULE turnlock -------------------------------
(***************************************************************************)
(* Invocations, turns, grants and deadlines, after the rules of kernel.md: *)
(* written by hand, from the text, and from no table.                      *)
(*                                                                         *)
(* A step is a delivery that is accepted, a deadline that has come due, or *)
(* time that passes.  What is refused adds nothing (K-2): it is no step,   *)
(* and its reason is not told here.  `facts` says what the last step added *)
(* to the journal; the other variables are what the facts come to.         *)
(*                                                                         *)
(* One receive is: Advance to its time, the deadlines that are over by     *)
(* then, each a step, and the step of its delivery (K-11).                 *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    None,               \* what is absent
    MaxCalls,           \* K-56: calls of one turn,
    MaxGrants,          \*       grants in force,
    MaxContinuations,   \*       continuations owed
    Capacity,           \* K-54: so many entries are remembered,
    RememberFor         \*       for so long

CONSTANTS               \* What may be delivered: section 3, cut down to what a scope explores.
    Turns,              \* ids of turns
    Nobody,             \* {None} where a sender may leave the turn out, else {}
    Calls,              \* calls are numbered 1 .. Calls
    Gated, Observed,    \* those that require approval, those that another runtime starts
    OtherTool, OtherArguments,  \* those of another tool, with other arguments than the rest
    Sizes,              \* with how many calls a turn may be opened
    Timeouts,           \* of approvals
    Scopes, Matches, Lasts,     \* of approvals; how long their grants last
    Edits, Echoes,      \* edited arguments; the digests that an approval may echo
    Leases, Renewals, Graces,
    Losses,             \* {TRUE} where an executor may be gone, else {}
    Resolutions,        \* of doubt: "retry", "result", "error"
    Seconds             \* by how much time may pass at once

VARIABLES
    now,                \* the time that counts, never before the latest fact's (K-10)
    epoch,              \* turns opened so far (K-21)
    turn,               \* the turn that is active, or else the one that closed last
    calls,              \* its invocations, by id
    lives,              \* history: the lifecycle facts of each of them, in order
    continuations,      \* those owed (K-52)
    grants,             \* those in force, in order of issue (K-40)
    issued,             \* how many grants there ever were: their ids count
    memory,             \* what closed, the least recently closed first (K-54)
    facts               \* what the last step added to the journal, in order

vars == <<now, epoch, turn, calls, lives, continuations, grants, issued, memory, facts>>

-------------------------------------------------------------------------------
(* Words                                                                       *)

Range(s) == {s[n] : n \in DOMAIN s}
Joined(s) == LET upTo[n \in 0 .. Len(s)] == IF n = 0 THEN <<>> ELSE upTo[n - 1] \o s[n]
             IN  upTo[Len(s)]
Last(s, n) == SubSeq(s, IF Len(s) > n THEN Len(s) - n + 1 ELSE 1, Len(s))

Ends == {"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"}
Lifecycle == Ends \cup {"TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED", "TOOL_EXECUTION_STARTED"}

Terminal(c) == c.phase \in {"SUCCEEDED", "FAILED", "DENIED"}
Waiting(c)  == c.gated /\ c.phase = "REQUESTED"             \* "REQUESTED, gated" in section 6
Ready(c)    == c.phase \in {"REQUESTED", "APPROVED", "RETRY_AUTHORISED"} /\ ~Waiting(c)
InDoubt(c)  == c.phase \in {"IN_DOUBT", "RETRY_AUTHORISED"} \* K-35, K-60
Running(c)  == c.phase \in {"STARTED", "IN_DOUBT", "RETRY_AUTHORISED"}  \* or so it may be

\* K-33, K-58: the attempt for which an execute is owed; 0 where none is.
Owed(c) == IF Ready(c) /\ ~c.observed THEN c.attempt + 1 ELSE 0

Active == turn.phase \in {"OPEN", "SEALED", "INTERRUPTING"}
Members == Range(turn.order)
InOrder(S) == SelectSeq(turn.order, LAMBDA i : i \in S)

Digest(arguments) == arguments      \* K-32: it tells arguments apart, and that is all it does
After(seconds) == IF seconds = None THEN None ELSE now + seconds
Duration(seconds) == IF seconds = None THEN TRUE ELSE seconds >= 0

-------------------------------------------------------------------------------
(* Deadlines: K-11, K-34                                                       *)

Nth(n) == calls[turn.order[n]]

\* K-11: "oldest deadline first, ties in the order approval deadline, lease, grant expiry,
\* interrupt grace, then expected order (grants: order of issue)": <<at, kind, place>>.
Deadlines ==
    (IF ~Active THEN {} ELSE
        {<<Nth(n).deadline, IF Waiting(Nth(n)) THEN 1 ELSE 2, n>> :
            n \in {m \in DOMAIN turn.order : Nth(m).deadline # None}}
        \cup (IF turn.grace = None THEN {} ELSE {<<turn.grace, 4, 0>>}))
    \cup {<<g.until, 3, g.number>> : g \in {h \in Range(grants) : h.until # None}}

Before(d, e) == \/ d[1] < e[1]
                \/ d[1] = e[1] /\ d[2] < e[2]
                \/ d[1] = e[1] /\ d[2] = e[2] /\ d[3] < e[3]

\* K-34: "Every deadline … is over when `now` is strictly past it."
Overdue == {d \in Deadlines : now > d[1]}
NothingDue == Overdue = {}

\* The one deadline whose turn it is, if it is of this kind.
Due(kind) == {d \in Overdue : d[2] = kind /\ \A e \in Overdue \ {d} : Before(d, e)}

-------------------------------------------------------------------------------
(* Memory: K-54                                                                *)

\* "none older than 300 s (age > 300 is gone)"
Remembered(entry) == now - entry.at <= RememberFor
RememberedTurn(t) == \E n \in DOMAIN memory :
    memory[n].turn = t /\ memory[n].call = None /\ Remembered(memory[n])
RememberedCall(i) == \E n \in DOMAIN memory : memory[n].call = i /\ Remembered(memory[n])

\* "On closing, each invocation in expected order and then the turn itself go into the
\* recent-settled memory …, the least recently closed leaving first."
Remembering(t) ==
    LET entry(i) == [turn |-> t.id, call |-> i, at |-> now]
        closed   == [n \in DOMAIN t.order |-> entry(t.order[n])]
    IN  Last(SelectSeq(memory, Remembered) \o closed \o <<entry(None)>>, Capacity)

-------------------------------------------------------------------------------
(* Facts: section 4.  What every fact carries is left out – run, number, time, *)
(* commit – and what no rule computes: results, workers, who decided.          *)

Fact(type, input, more) == [type |-> type, input |-> input, turn |-> turn.id] @@ more
About(type, input, i, more) == Fact(type, input, [invocation |-> i] @@ more)
Lived(type, input, i, more) == About(type, input, i, [tool |-> calls[i].tool] @@ more)
Nothing == [x \in {} |-> None]

Denied(input, i, cause, reason) ==
    Lived("TOOL_DENIED", input, i, [cause |-> cause, reason |-> reason])
Failed(input, i, cause, error) ==
    Lived("TOOL_EXECUTION_FAILED", input, i, [cause |-> cause, error |-> error])

\* K-41: "with TOOL_APPROVED (scope `once`) naming the grant".
ByGrant(t, i, tool, g) ==
    [type |-> "TOOL_APPROVED", input |-> "grant", turn |-> t, invocation |-> i, tool |-> tool,
     scope |-> "once", match |-> None, grant |-> g.number, arguments |-> None]

\* K-31: the life of each invocation goes on; opening a turn begins new ones.
LivesAfter(before, said, ids) ==
    LET kinds(i) == LET of == SelectSeq(said, LAMBDA f : f.type \in Lifecycle /\ f.invocation = i)
                    IN  [n \in DOMAIN of |-> of[n].type]
    IN  [i \in ids |-> (IF i \in DOMAIN before THEN before[i] ELSE <<>>) \o kinds(i)]

-------------------------------------------------------------------------------
(* The one door: K-50, K-51.  Whatever a step did to the turn, its invocations *)
(* and the grants, it leaves through here: the turn closes if all of it is     *)
(* done, and says so last.                                                     *)

Results(t, c) == [n \in DOMAIN t.order |-> [call |-> t.order[n], status |-> c[t.order[n]].phase]]

Door(t, c, g, said) ==
    LET done    == \A i \in Range(t.order) : Terminal(c[i])
        settles == t.phase = "SEALED" /\ done
        stops   == t.phase = "INTERRUPTING" /\ done
        end(type, phase) ==
            /\ turn' = [t EXCEPT !.phase = phase, !.grace = None]
            /\ facts' = Append(said, [type |-> type, input |-> "settle", turn |-> t.id])
            /\ memory' = Remembering(t)
            /\ grants' = SelectSeq(g, LAMBDA x : x.scope # "turn")      \* K-42
    IN  /\ calls' = c
        /\ lives' = LivesAfter(IF t.id = turn.id /\ Active THEN lives ELSE <<>>, said,
                               Range(t.order))
        /\ CASE settles ->
                   /\ end("TURN_SETTLED", "SETTLED")
                   /\ continuations' = IF t.order = <<>> THEN continuations ELSE
                          continuations \cup {[turn |-> t.id, results |-> Results(t, c)]}
             [] stops ->
                   /\ end("TURN_INTERRUPTED", "INTERRUPTED")
                   /\ UNCHANGED continuations                           \* K-53
             [] OTHER ->
                   /\ turn' = t
                   /\ facts' = said
                   /\ grants' = g
                   /\ UNCHANGED <<memory, continuations>>

\* One invocation becomes this, and the step says one fact.
Becomes(i, c, said) ==
    /\ Door(turn, [calls EXCEPT ![i] = c], grants, <<said>>)
    /\ UNCHANGED <<now, epoch, issued>>

\* An ended, denied, doubted or decided call has no deadline any more.
In(phase, c) == [c EXCEPT !.phase = phase, !.deadline = None]

-------------------------------------------------------------------------------
(* Who is meant: section 5, K-20, K-22                                         *)

Meant(t, i) ==
    /\ NothingDue
    /\ Active
    /\ i \in Members
    /\ IF t = None THEN ~RememberedCall(i) ELSE t = turn.id

\* Section 5, 4: "attempt given, and neither the owed one (of a claim while an execute is owed)
\* nor the current one (otherwise, once the invocation has been started)" is stale.
Current(c, attempt) == attempt \in IF c.attempt = 0 THEN {attempt} ELSE {None, c.attempt}

Is(t, phases) == NothingDue /\ Active /\ t = turn.id /\ turn.phase \in phases

-------------------------------------------------------------------------------
(* Grants: K-40 … K-42                                                         *)

\* K-41, of a call that requires approval.
Covers(g, c) ==
    /\ g.tool = c.tool
    /\ g.match = "exact" => g.digest = Digest(c.arguments)

Covering(c) == {g \in Range(grants) : Covers(g, c)}
Oldest(gs) == CHOOSE g \in gs : \A h \in gs : g.number <= h.number

GrantWithNumber(number) == {g \in Range(grants) : g.number = number}
Without(number) == SelectSeq(grants, LAMBDA g : g.number # number)

GrantEnds(type, input, number) ==
    /\ grants' = Without(number)
    /\ facts' = <<[type |-> type, input |-> input, turn |-> IF Active THEN turn.id ELSE None,
                   grant |-> number]>>
    /\ UNCHANGED <<now, epoch, turn, calls, lives, continuations, issued, memory>>

-------------------------------------------------------------------------------
(* Deliveries about the turn                                                   *)

\* Section 4: "per call in order TOOL_APPROVAL_REQUESTED if gated, TOOL_APPROVED if a grant covers
\* it (the oldest in force), nothing if free".
Asked(t, input, call) ==
    IF ~call.gated THEN <<>>
    ELSE IF Covering(call) # {}
         THEN <<ByGrant(t, call.id, call.tool, Oldest(Covering(call)))>>
         ELSE <<[type |-> "TOOL_APPROVAL_REQUESTED", input |-> input, turn |-> t,
                 invocation |-> call.id, tool |-> call.tool, arguments |-> call.arguments,
                 digest |-> Digest(call.arguments), deadline |-> After(call.timeout)]>>

Begun(call) ==
    LET waits == call.gated /\ Covering(call) = {}
    IN  [tool |-> call.tool, arguments |-> call.arguments, gated |-> call.gated,
         observed |-> call.observed, attempt |-> 0,
         phase |-> IF call.gated /\ ~waits THEN "APPROVED" ELSE "REQUESTED",
         deadline |-> IF waits THEN After(call.timeout) ELSE None]

\* K-21, K-55, K-56.
OpenTurn(t, roster, sealed, named) ==
    LET ids == [n \in DOMAIN roster |-> roster[n].id]
        opened == [id |-> t, phase |-> IF sealed THEN "SEALED" ELSE "OPEN",
                   order |-> ids, grace |-> None]
        asked == [n \in DOMAIN roster |-> Asked(t, "open_turn", roster[n])]
    IN  /\ NothingDue
        /\ ~Active
        /\ ~RememberedTurn(t)
        /\ t \notin {k.turn : k \in continuations}
        /\ named \in {None, epoch + 1}
        /\ Cardinality(Range(ids)) = Len(roster)
        /\ sealed => roster # <<>>
        /\ Len(roster) <= MaxCalls
        /\ Cardinality(continuations) < MaxContinuations
        /\ Door(opened,
                [i \in Range(ids) |->
                    Begun(roster[CHOOSE n \in DOMAIN roster : roster[n].id = i])],
                grants,
                <<[type |-> "TURN_OPENED", input |-> "open_turn", turn |-> t,
                   epoch |-> epoch + 1, sealed |-> sealed, calls |-> roster]>> \o Joined(asked))
        /\ epoch' = epoch + 1
        /\ UNCHANGED <<now, issued>>

AddCall(t, call) ==
    /\ Is(t, {"OPEN"})
    /\ call.id \notin Members
    /\ Len(turn.order) < MaxCalls
    /\ Door([turn EXCEPT !.order = Append(@, call.id)],
            [i \in Members \cup {call.id} |-> IF i = call.id THEN Begun(call) ELSE calls[i]],
            grants,
            <<Fact("CALL_ADDED", "add_call", [call |-> call])>> \o Asked(t, "add_call", call))
    /\ UNCHANGED <<now, epoch, issued>>

SealTurn(t) ==
    /\ Is(t, {"OPEN"})
    /\ Door([turn EXCEPT !.phase = "SEALED"], calls, grants,
            <<Fact("TURN_SEALED", "seal_turn", Nothing)>>)
    /\ UNCHANGED <<now, epoch, issued>>

\* K-53: "what has not started is DENIED "interrupted"; what runs gets a `cancel` effect; what runs
\* or is in doubt may still report truthfully"; K-60: an authorised retry is withdrawn.
Interrupt(t, grace) ==
    LET unstarted == {i \in Members : calls[i].phase \in {"REQUESTED", "APPROVED"}}
        after(c) == CASE c.phase \in {"REQUESTED", "APPROVED"} -> In("DENIED", c)
                      [] c.phase = "RETRY_AUTHORISED" -> In("IN_DOUBT", c)
                      [] OTHER -> c
        denied == InOrder(unstarted)
    IN  /\ Is(t, {"OPEN", "SEALED"})
        /\ grace >= 0
        /\ Door([turn EXCEPT !.phase = "INTERRUPTING", !.grace = now + grace],
                [i \in Members |-> after(calls[i])],
                grants,
                <<Fact("TURN_INTERRUPTING", "interrupt", [until |-> now + grace])>>
                \o [n \in DOMAIN denied |->
                        Denied("interrupt", denied[n], "interrupt", "interrupted")])
        /\ UNCHANGED <<now, epoch, issued>>

\* K-52: "owed until acknowledged".  Here it may come right after the deadline that settled the turn,
\* as a receive of its own; K-22, which refuses it in the same one, is for Traceturnlock.tla.
Acknowledge(t) ==
    /\ NothingDue
    /\ t \in {k.turn : k \in continuations}
    /\ continuations' = {k \in continuations : k.turn # t}
    /\ facts' = <<[type |-> "CONTINUATION_TAKEN", input |-> "acknowledge", turn |-> t]>>
    /\ UNCHANGED <<now, epoch, turn, calls, lives, grants, issued, memory>>

Revoke(number) ==
    /\ NothingDue
    /\ GrantWithNumber(number) # {}
    /\ GrantEnds("GRANT_REVOKED", "revoke", number)

-------------------------------------------------------------------------------
(* Deliveries about an invocation: the table of section 6                      *)

\* K-40: "Scope `once` covers its invocation alone. `turn` / `session` also issue a grant …
\* The arguments are those that will run (the edited ones)."
Approve(t, i, echo, scope, match, lasts, edit) ==
    LET c == calls[i]
        runs == IF edit = None THEN c.arguments ELSE edit
        grant == [number |-> issued + 1, tool |-> c.tool, match |-> match,
                  digest |-> Digest(runs), scope |-> scope, until |-> After(lasts)]
        others == IF scope = "once" THEN {} ELSE
                  {j \in Members \ {i} : Waiting(calls[j]) /\ Covers(grant, calls[j])}
        covered == InOrder(others)
        approved == Lived("TOOL_APPROVED", "approve", i,
                          [scope |-> scope, match |-> IF scope = "once" THEN None ELSE match,
                           grant |-> None, arguments |-> edit])
        given == Fact("GRANT_ISSUED", "approve",
                      [grant |-> grant.number, tool |-> c.tool, match |-> match,
                       digest |-> Digest(runs), scope |-> scope, until |-> After(lasts)])
        after == [j \in Members |->
                    IF j = i THEN [In("APPROVED", c) EXCEPT !.arguments = runs]
                    ELSE IF j \in others THEN In("APPROVED", calls[j]) ELSE calls[j]]
    IN  /\ Meant(t, i)
        /\ Waiting(c)
        /\ echo \in {None, Digest(c.arguments)}                         \* K-32
        /\ scope # "once" => Len(grants) < MaxGrants                    \* K-56
        /\ IF scope = "once"
           THEN Door(turn, after, grants, <<approved>>) /\ UNCHANGED issued
           ELSE /\ Door(turn, after, Append(grants, grant),
                        <<approved, given>> \o
                        [n \in DOMAIN covered |->
                            ByGrant(t, covered[n], calls[covered[n]].tool, grant)])
                /\ issued' = issued + 1
        /\ UNCHANGED <<now, epoch>>

\* "A deny without a reason (absent or empty) says `denied`."
Deny(t, i, reason) ==
    /\ Meant(t, i)
    /\ Waiting(calls[i])
    /\ Becomes(i, In("DENIED", calls[i]),
               Denied("deny", i, "decision", IF reason = None THEN "denied" ELSE reason))

\* K-33: "An accepted claim of the owed attempt is the only way to start"; K-58 of an observed call:
\* "A `claim` records that it has begun …, as attempt 1".  K-34: "A lease, given with a claim, runs
\* out at now + lease".
Claim(t, i, attempt, lease) ==
    LET c == calls[i]
        next == c.attempt + 1
        started == [c EXCEPT !.phase = "STARTED", !.attempt = next, !.deadline = After(lease)]
    IN  /\ Meant(t, i)
        /\ Ready(c)
        /\ IF Owed(c) > 0 THEN attempt = Owed(c) ELSE Current(c, attempt)
        /\ Duration(lease)
        /\ Becomes(i, started,
                   IF next = 1
                   THEN Lived("TOOL_EXECUTION_STARTED", "claim", i,
                              [attempt |-> 1, arguments |-> c.arguments, until |-> After(lease)])
                   ELSE About("EXECUTION_RETRIED", "claim", i,
                              [attempt |-> next, until |-> After(lease)]))

Renew(t, i, attempt, lease) ==
    LET c == calls[i]
    IN  /\ Meant(t, i)
        /\ c.phase = "STARTED"
        /\ Current(c, attempt)
        /\ lease >= 0
        /\ Becomes(i, [c EXCEPT !.deadline = now + lease],
                   About("LEASE_RENEWED", "renew", i,
                         [attempt |-> c.attempt, until |-> now + lease]))

\* "it could not be started: no such tool, bad arguments, a preprocessor failed"
Reject(t, i, error) ==
    /\ Meant(t, i)
    /\ calls[i].phase \in {"REQUESTED", "APPROVED"}
    /\ Becomes(i, In("FAILED", calls[i]), Failed("reject", i, "rejected", error))

\* K-35: "A late true report settles it."
ReportResult(t, i, attempt) ==
    /\ Meant(t, i)
    /\ Running(calls[i])
    /\ Current(calls[i], attempt)
    /\ Becomes(i, In("SUCCEEDED", calls[i]),
               Lived("TOOL_EXECUTION_SUCCEEDED", "report_result", i, Nothing))

ReportError(t, i, attempt, error) ==
    /\ Meant(t, i)
    /\ Running(calls[i])
    /\ Current(calls[i], attempt)
    /\ Becomes(i, In("FAILED", calls[i]), Failed("report_error", i, "reported", error))

Doubted(input, i) ==
    Becomes(i, In("IN_DOUBT", calls[i]),
            About("EXECUTION_IN_DOUBT", input, i, [attempt |-> calls[i].attempt]))

Lose(t, i, attempt) ==
    /\ Meant(t, i)
    /\ calls[i].phase = "STARTED"
    /\ Current(calls[i], attempt)
    /\ Doubted("lose", i)

\* K-58: nothing observed is retried by us; K-53: nothing is while the turn stops.
ResolveRetry(t, i, attempt) ==
    /\ Meant(t, i)
    /\ calls[i].phase = "IN_DOUBT"
    /\ attempt = calls[i].attempt
    /\ ~calls[i].observed
    /\ turn.phase # "INTERRUPTING"
    /\ Becomes(i, In("RETRY_AUTHORISED", calls[i]),
               About("RETRY_AUTHORISED", "resolve_retry", i, [attempt |-> attempt]))

ResolveResult(t, i, attempt) ==
    /\ Meant(t, i)
    /\ InDoubt(calls[i])
    /\ attempt = calls[i].attempt
    /\ Becomes(i, In("SUCCEEDED", calls[i]),
               Lived("TOOL_EXECUTION_SUCCEEDED", "resolve_result", i, Nothing))

ResolveError(t, i, attempt, error) ==
    /\ Meant(t, i)
    /\ InDoubt(calls[i])
    /\ attempt = calls[i].attempt
    /\ Becomes(i, In("FAILED", calls[i]), Failed("resolve_error", i, "resolved", error))

-------------------------------------------------------------------------------
(* Deadlines, and time                                                         *)

ApprovalOver == \E d \in Due(1) : LET i == turn.order[d[3]] IN
    Becomes(i, In("DENIED", calls[i]), Denied("approval_over", i, "expiry", "approval expired"))

\* K-34: "when it is over, that is a lose".
LeaseOver == \E d \in Due(2) : Doubted("lease_over", turn.order[d[3]])

GrantOver == \E d \in Due(3) : GrantEnds("GRANT_EXPIRED", "grant_over", d[3])

\* K-53: "at now + grace, what has not is FAILED "interrupted; outcome unknown"".
GraceOver == \E d \in Due(4) :
    LET left == InOrder({i \in Members : ~Terminal(calls[i])})
    IN  /\ Door(turn,
                [i \in Members |-> IF Terminal(calls[i]) THEN calls[i] ELSE In("FAILED", calls[i])],
                grants,
                [n \in DOMAIN left |->
                    Failed("grace_over", left[n], "interrupted", "interrupted; outcome unknown")])
        /\ UNCHANGED <<now, epoch, issued>>

Advance(seconds) ==
    /\ NothingDue
    /\ now' = now + seconds
    /\ facts' = <<>>
    /\ UNCHANGED <<epoch, turn, calls, lives, continuations, grants, issued, memory>>

\* K-2: "recovery folds the journal", and finds what was there.
Recover ==
    /\ NothingDue
    /\ facts' = <<>>
    /\ UNCHANGED <<now, epoch, turn, calls, lives, continuations, grants, issued, memory>>

-------------------------------------------------------------------------------
(* The specification                                                           *)

Init ==
    /\ now = 0
    /\ epoch = 0
    /\ turn = [id |-> None, phase |-> "NONE", order |-> <<>>, grace |-> None]
    /\ calls = <<>>
    /\ lives = <<>>
    /\ continuations = {}
    /\ grants = <<>>
    /\ issued = 0
    /\ memory = <<>>
    /\ facts = <<>>

Call(n, timeout) ==
    [id |-> n, tool |-> IF n \in OtherTool THEN "other" ELSE "tool",
     arguments |-> IF n \in OtherArguments THEN "other" ELSE "these",
     gated |-> n \in Gated, observed |-> n \in Observed, timeout |-> timeout]

\* With scope once, match and duration mean nothing (section 3).
Approvals ==
    [scope : Scopes \cap {"once"}, match : {None}, lasts : {None}]
    \cup [scope : Scopes \ {"once"}, match : Matches, lasts : Lasts]

Senders == Turns \cup Nobody
Ids == 1 .. Calls

\* Attempts, epochs and grants are named as they stand to what counts: the one before, the one after.
Near == {-1, 0, 1}
Attempt(i, more) == IF more = None THEN None ELSE calls[i].attempt + more
Epoch(more) == IF more = None THEN None ELSE epoch + more
InForce(n) == IF n <= Len(grants) THEN grants[n].number ELSE 0

Opens == \E t \in Turns, n \in Sizes, d \in Timeouts, sealed \in BOOLEAN, more \in {None, 0, 1, 2} :
    OpenTurn(t, [k \in 1 .. n |-> Call(k, d)], sealed, Epoch(more))
Adds == \E t \in Turns, n \in Ids, d \in Timeouts : AddCall(t, Call(n, d))
Seals == \E t \in Turns : SealTurn(t)
Approves == \E t \in Turns, i \in Ids, echo \in Echoes, a \in Approvals, edit \in Edits :
    Approve(t, i, echo, a.scope, a.match, a.lasts, edit)
Denies == \E t \in Turns, i \in Ids : Deny(t, i, "no")
Claims == \E t \in Turns, i \in Ids, more \in Near, lease \in Leases :
    Claim(t, i, Attempt(i, more), lease)
Renews == \E t \in Turns, i \in Ids, more \in Near \cup {None}, lease \in Renewals :
    Renew(t, i, Attempt(i, more), lease)
Rejects == \E t \in Senders, i \in Ids : Reject(t, i, "no")
Reports == \E t \in Senders, i \in Ids, more \in Near \cup {None} :
    \/ ReportResult(t, i, Attempt(i, more))
    \/ ReportError(t, i, Attempt(i, more), "no")
Loses == \E x \in Losses, t \in Senders, i \in Ids, more \in Near \cup {None} :
    Lose(t, i, Attempt(i, more))
Resolves == \E t \in Turns, i \in Ids, more \in Near :
    \/ \E as \in Resolutions \cap {"retry"} : ResolveRetry(t, i, Attempt(i, more))
    \/ \E as \in Resolutions \cap {"result"} : ResolveResult(t, i, Attempt(i, more))
    \/ \E as \in Resolutions \cap {"error"} : ResolveError(t, i, Attempt(i, more), "no")
Interrupts == \E t \in Turns, grace \in Graces : Interrupt(t, grace)
Acknowledges == \E t \in Turns : Acknowledge(t)
Revokes == \E n \in 1 .. MaxGrants : Revoke(InForce(n))
Advances == \E seconds \in Seconds : Advance(seconds)

Next ==
    \/ Opens \/ Adds \/ Seals \/ Interrupts \/ Acknowledges \/ Revokes
    \/ Approves \/ Denies \/ Claims \/ Renews \/ Rejects \/ Reports \/ Loses \/ Resolves
    \/ ApprovalOver \/ LeaseOver \/ GrantOver \/ GraceOver
    \/ Advances
    \/ Recover

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
(* What is owed is a function of state alone: K-3, section 9                   *)

Executes == {<<i, Owed(calls[i])>> : i \in {j \in Members : Active /\ Owed(calls[j]) > 0}}
Cancels == {<<i, calls[i].attempt>> :
    i \in {j \in Members : turn.phase = "INTERRUPTING" /\ calls[j].phase = "STARTED"}}

-------------------------------------------------------------------------------
(* What must hold.  A state predicate is an invariant; one with primes is to   *)
(* hold of every step, and TLC looks at every step, also at one to a state     *)
(* that it has seen.                                                           *)

Says(type) == type \in {facts'[n].type : n \in DOMAIN facts'}
Closes == Says("TURN_SETTLED") \/ Says("TURN_INTERRUPTED")

Phases == {"REQUESTED", "APPROVED", "STARTED", "IN_DOUBT", "RETRY_AUTHORISED",
           "SUCCEEDED", "FAILED", "DENIED"}
IsTime(t) == IF t = None THEN TRUE ELSE t \in Int

TypeOK ==
    /\ now \in Nat /\ epoch \in Nat /\ issued \in Nat
    /\ turn.phase \in {"NONE", "OPEN", "SEALED", "SETTLED", "INTERRUPTING", "INTERRUPTED"}
    /\ IsTime(turn.grace)
    /\ DOMAIN calls = Members /\ DOMAIN lives = Members
    /\ \A i \in Members :
        /\ calls[i].phase \in Phases /\ calls[i].attempt \in Nat /\ IsTime(calls[i].deadline)
        /\ calls[i].gated \in BOOLEAN /\ calls[i].observed \in BOOLEAN
        /\ Range(lives[i]) \subseteq Lifecycle
    /\ \A k \in continuations : Len(k.results) > 0
    /\ \A n \in DOMAIN grants :
        /\ grants[n].number \in 1 .. issued /\ IsTime(grants[n].until)
        /\ grants[n].scope \in {"turn", "session"} /\ grants[n].match \in {"exact", "tool"}
        /\ n > 1 => grants[n - 1].number < grants[n].number
    /\ \A n \in DOMAIN memory : memory[n].at <= now

\* K-30: "The first outcome is frozen: a duplicate replaces nothing and counts nothing."
K30 == [][\A i \in Members : Terminal(calls[i]) /\ Active => calls'[i] = calls[i]]_vars

\* K-31: "Lifecycle facts per invocation: at most one of each kind, exactly one terminal once
\* settled, STARTED never on the denied path, APPROVED never after DENIED."
OneLife(life, c) ==
    /\ \A m, n \in DOMAIN life : life[m] = life[n] => m = n
    /\ Cardinality({n \in DOMAIN life : life[n] \in Ends}) = IF Terminal(c) THEN 1 ELSE 0
    /\ ~({"TOOL_EXECUTION_STARTED", "TOOL_DENIED"} \subseteq Range(life))
    /\ \A m, n \in DOMAIN life : life[m] = "TOOL_DENIED" /\ life[n] = "TOOL_APPROVED" => n < m
Lives == \A i \in Members : OneLife(lives[i], calls[i])
K31 == [][Lives']_vars

\* K-33: "An accepted claim of the owed attempt is the only way to start"; "attempt is 1 from the
\* first claim, and one more from the claim of each authorised retry".
K33 == [][\A i \in Members : Active =>
            /\ calls'[i].attempt # calls[i].attempt =>
                /\ calls'[i].attempt = calls[i].attempt + 1
                /\ Ready(calls[i])
                /\ Says("TOOL_EXECUTION_STARTED") <=> calls[i].attempt = 0
            /\ calls[i].phase # "STARTED" /\ calls'[i].phase = "STARTED" =>
                calls'[i].attempt # calls[i].attempt]_vars

\* K-34: "A lease … runs out at now + lease unless renewed; when it is over, that is a lose": only
\* what waits or runs has a deadline.
K34 == Active => \A i \in Members :
    calls[i].deadline # None => Waiting(calls[i]) \/ calls[i].phase = "STARTED"

\* K-11: "Every receive first lets happen what has come due by `now`".
K11 == [][Overdue # {} => facts' # <<>> /\ now' = now
                          /\ facts'[1].input \in {"approval_over", "lease_over", "grant_over",
                                                  "grace_over"}]_vars

\* K-35: "What was started and lost is in doubt until a true report or somebody resolves it; nothing
\* is silently executed again."
K35 == [][\A i \in Members : Active /\ calls[i].phase = "IN_DOUBT" =>
            calls'[i].phase \in {"IN_DOUBT", "RETRY_AUTHORISED", "SUCCEEDED", "FAILED"}]_vars

\* K-40: "An approval for a turn or a session issues a grant"; "Grant ids count".
K40 == [][issued' = issued + (IF Says("GRANT_ISSUED") THEN 1 ELSE 0)
          /\ (Says("GRANT_ISSUED") => facts'[1].type = "TOOL_APPROVED"
                                      /\ facts'[1].scope # "once")]_vars

\* K-41: "A gated call covered by a live grant is approved at once"; "Issuing a grant approves the
\* pending invocations of the turn that it covers".
K41 == Active => \A i \in Members : Waiting(calls[i]) => Covering(calls[i]) = {}

\* K-42: "A grant ends by its scope, its expiry or a revocation, and by nothing else".
K42 == [][\A g \in Range(grants) : g \notin Range(grants') =>
            \/ Closes /\ g.scope = "turn"
            \/ Says("GRANT_EXPIRED") /\ g.until # None /\ now > g.until
            \/ Says("GRANT_REVOKED") /\ facts'[1].grant = g.number]_vars
TurnGrants == \A g \in Range(grants) : g.scope = "turn" => Active

\* K-50: "A turn is settled when it is sealed and every expected invocation is terminal: by unique
\* membership, never by counting results."
K50 == [][Says("TURN_SETTLED") =>
            /\ turn.phase = "SEALED" \/ Says("TURN_SEALED")
            /\ turn'.phase = "SETTLED"
            /\ turn'.order = turn.order
            /\ \A i \in Range(turn'.order) : Terminal(calls'[i])]_vars
Unique == Cardinality(Members) = Len(turn.order)

\* K-51: "Denied, rejected, failed and succeeded calls settle through the same one door": nothing
\* that ends an invocation goes around it.
K51 == turn.phase \in {"SEALED", "INTERRUPTING"} => \E i \in Members : ~Terminal(calls[i])
LastWord == [][\A n \in DOMAIN facts' :
                facts'[n].type \in {"TURN_SETTLED", "TURN_INTERRUPTED"} => n = Len(facts')]_vars

\* K-52: "Settling asks for exactly one continuation: `continue(turn_id, results in expected
\* order)`, owed until acknowledged. No turn open → never a continuation. A turn sealed with no
\* calls settles without one."
K52 == [][LET born == continuations' \ continuations
              gone == continuations \ continuations'
          IN  /\ born # {} <=> Says("TURN_SETTLED") /\ turn.order # <<>>
              /\ \A k \in born : k = [turn |-> turn.id, results |-> Results(turn', calls')]
              /\ gone # {} => Says("CONTINUATION_TAKEN") /\ Cardinality(gone) = 1]_vars

\* K-53: "An interrupt denies what has not started, asks to cancel what runs, fails the rest when
\* the grace is over, and never continues."
K53 == turn.phase = "INTERRUPTING" =>
    /\ turn.grace # None
    /\ Executes = {}
    /\ \A i \in Members : calls[i].phase \in {"STARTED", "IN_DOUBT"} \/ Terminal(calls[i])
    /\ \A i \in Members : calls[i].phase = "STARTED" => <<i, calls[i].attempt>> \in Cancels
NeverContinues == [][turn.phase = "INTERRUPTING" =>
    /\ turn'.phase \in {"INTERRUPTING", "INTERRUPTED"}
    /\ facts' # <<>> => (facts'[1].input = "grace_over" => turn'.phase = "INTERRUPTED")
    /\ continuations' \subseteq continuations]_vars

\* K-54: "What has closed is remembered, so many entries and so long, and what comes again about it
\* is late or reused."
K54 == [][/\ Len(memory') <= Capacity
          /\ memory' # memory => Closes
          /\ Closes => LET closed == Append(turn'.order, None)
                           kept == IF Len(closed) < Capacity THEN Len(closed) ELSE Capacity
                       IN  Last(memory', kept) = [n \in 1 .. kept |->
                               [turn |-> turn'.id, at |-> now,
                                call |-> closed[Len(closed) - kept + n]]]
          /\ Says("TURN_OPENED") => ~RememberedTurn(turn'.id)]_vars

\* K-55: "An opening that is delivered again with its epoch is refused for good": epochs count.
K55 == [][epoch' = epoch + (IF Says("TURN_OPENED") THEN 1 ELSE 0)]_vars

-------------------------------------------------------------------------------
(* Two states from which everything goes on alike are one: times count from    *)
(* now, attempts are none, the first and later ones, and what is no longer     *)
(* seen is left out – epochs, numbers of grants, the turn that has closed, the *)
(* arguments of what has ended, entries that are gone.  So exploring ends.     *)

Since(t) == IF t = None THEN None ELSE t - now
SeenCall(c) == <<c.phase, c.gated, c.observed, IF c.attempt > 2 THEN 2 ELSE c.attempt,
                 Since(c.deadline), c.tool, IF Terminal(c) THEN None ELSE c.arguments>>
SeenGrant(g) == <<g.tool, g.match, g.digest, g.scope, Since(g.until)>>
SeenEntry(e) == <<e.turn, e.call, Since(e.at)>>
SeenContinuation(k) ==
    <<k.turn, [n \in DOMAIN k.results |-> <<k.results[n].call, k.results[n].status>>]>>

View == LET seen == SelectSeq(memory, Remembered) IN
    <<IF ~Active THEN None ELSE
        <<turn.id, turn.phase, Since(turn.grace), turn.order,
          [n \in DOMAIN turn.order |-> SeenCall(calls[turn.order[n]])],
          [n \in DOMAIN turn.order |-> lives[turn.order[n]]]>>,
      {SeenContinuation(k) : k \in continuations},
      [n \in DOMAIN grants |-> SeenGrant(grants[n])],
      [n \in DOMAIN seen |-> SeenEntry(seen[n])]>>

\* For whoever walks the same way elsewhere (`make check-formal`): each step, as TLC takes it.
Told == PrintT(ToString(
    <<View, [n \in DOMAIN facts' |-> <<facts'[n].type, facts'[n].input>>], View'>>))

===============================================================================
