---------------------------- MODULE Traceturnlock ----------------------------
(***************************************************************************)
(* Is a recorded journal a behaviour of turnlock.tla?  A trace is a        *)
(* journal, line by line; each commit of it must be one receive: time goes *)
(* on to that of the commit, what is over by then happens, one delivery is *)
(* accepted – the one that its first fact was brought about by – and the   *)
(* lines say what these steps say, no less and no more.                    *)
(*                                                                         *)
(* Recorded.tla is written from the journals (`make check-traces`): Traces *)
(* in which a line is [sequence, commit, at, fact]; times are the places   *)
(* of the journal's times in their order, since comparing them is all that *)
(* a rule does with a time, and a duration is the difference of two; and   *)
(* Gone, of each time the last one at which what closed then is remembered.*)
(***************************************************************************)
EXTENDS Recorded

VARIABLES
    k,          \* which trace
    l,          \* the line that comes next
    ends,       \* the last line of the commit under way
    delivered,  \* whether its delivery has been taken
    owed,       \* turns whose continuation was owed before it (K-22)
    said        \* what the last step said and no line has told yet

trace == <<k, l, ends, delivered, owed, said>>

Lines == Traces[k]
Line == Lines[l]
More == l <= Len(Lines)

\* K-54, where times are places in an order: takes the place of Remembered.
TraceRemembered(entry) == now <= Gone[k][entry.at]

TraceInit ==
    /\ Init
    /\ k \in DOMAIN Traces
    /\ l = 1 /\ ends = 0 /\ delivered = FALSE /\ owed = {} /\ said = <<>>

\* K-9, K-10: a commit begins; nothing of the one before is missing.
Begin ==
    /\ More
    /\ l > ends
    /\ Line.sequence = l
    /\ Line.commit >= l
    /\ Line.at >= now
    /\ Advance(Line.at - now)
    /\ ends' = Line.commit
    /\ delivered' = FALSE
    /\ owed' = {c.turn : c \in continuations}
    /\ UNCHANGED <<k, l, said>>

\* What the line says is what the last step says next.  Journals of an older version name no input
\* (K-59).
Tells(f, g) == f = IF g.input = None THEN [g EXCEPT !.input = f.input] ELSE g

Read ==
    /\ More
    /\ said # <<>>
    /\ Line.sequence = l /\ Line.commit = ends /\ Line.at = now
    /\ Tells(Head(said), Line.fact)
    /\ l = ends => Tail(said) = <<>> /\ NothingDue
    /\ PrintT(<<"read", k, l>>)
    /\ l' = l + 1
    /\ said' = Tail(said)
    /\ UNCHANGED <<vars, k, ends, delivered, owed>>

Deadline == ApprovalOver \/ LeaseOver \/ GrantOver \/ GraceOver

From(until) == IF until = None THEN None ELSE until - now
\* How long a grant lasts stands in the fact after the approval.
LastsOf == IF l = Len(Lines) THEN None
           ELSE LET g == Lines[l + 1].fact
                IN  IF g.type # "GRANT_ISSUED" THEN None
                    ELSE IF g.until = None THEN None
                         ELSE IF g.until < now THEN 0 ELSE g.until - now

\* The delivery whose facts begin with this one.
Delivery(f) ==
    \/ f.type = "TURN_OPENED" /\ OpenTurn(f.turn, f.calls, f.sealed, f.epoch)
    \/ f.type = "CALL_ADDED" /\ AddCall(f.turn, f.call)
    \/ f.type = "TURN_SEALED" /\ SealTurn(f.turn)
    \/ f.type = "TURN_INTERRUPTING" /\ Interrupt(f.turn, f.until - now)
    \/ f.type = "CONTINUATION_TAKEN" /\ f.turn \in owed /\ Acknowledge(f.turn)
    \/ f.type = "GRANT_REVOKED" /\ Revoke(f.grant)
    \/ /\ f.type = "TOOL_APPROVED"
       /\ f.grant = None
       /\ Approve(f.turn, f.invocation, None, f.scope,
                  IF f.match = None THEN "exact" ELSE f.match, LastsOf, f.arguments)
    \/ f.type = "TOOL_DENIED" /\ f.cause = "decision" /\ Deny(f.turn, f.invocation, f.reason)
    \/ /\ f.type \in {"TOOL_EXECUTION_STARTED", "EXECUTION_RETRIED"}
       /\ Claim(f.turn, f.invocation, f.attempt, From(f.until))
    \/ /\ f.type = "LEASE_RENEWED"
       /\ Renew(f.turn, f.invocation, f.attempt, f.until - now)
    \/ f.type = "EXECUTION_IN_DOUBT" /\ Lose(f.turn, f.invocation, f.attempt)
    \/ f.type = "RETRY_AUTHORISED" /\ ResolveRetry(f.turn, f.invocation, f.attempt)
    \/ /\ f.type = "TOOL_EXECUTION_SUCCEEDED"
       /\ f.input # "resolve_result"
       /\ ReportResult(f.turn, f.invocation, None)
    \/ /\ f.type = "TOOL_EXECUTION_SUCCEEDED"
       /\ f.input = "resolve_result"
       /\ f.invocation \in DOMAIN calls
       /\ ResolveResult(f.turn, f.invocation, calls[f.invocation].attempt)
    \/ /\ f.type = "TOOL_EXECUTION_FAILED"
       /\ f.cause = "rejected"
       /\ Reject(f.turn, f.invocation, f.error)
    \/ /\ f.type = "TOOL_EXECUTION_FAILED"
       /\ f.cause = "reported"
       /\ ReportError(f.turn, f.invocation, None, f.error)
    \/ /\ f.type = "TOOL_EXECUTION_FAILED"
       /\ f.cause = "resolved"
       /\ f.invocation \in DOMAIN calls
       /\ ResolveError(f.turn, f.invocation, calls[f.invocation].attempt, f.error)

Happens ==
    /\ More
    /\ l <= ends
    /\ said = <<>>
    /\ ~delivered
    /\ IF NothingDue THEN Delivery(Line.fact) /\ delivered' = TRUE
                     ELSE Deadline /\ UNCHANGED delivered
    /\ said' = facts'
    /\ UNCHANGED <<k, l, ends, owed>>

TraceNext == Begin \/ Happens \/ Read

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace>>

===============================================================================
