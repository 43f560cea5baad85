package trail

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// A Position is a place in one stream of a session: an event, behind which a client goes on.
type Position struct{ trail, event int }

// Own says whether the stream is the session's own, which belongs to no request.
func (p Position) Own() bool { return p.trail == 0 }

// id is the event's id. The tag keeps it from meaning anything in another session.
func (p Position) id(tag string) string {
	id := make([]byte, 0, len(tag)+12)
	id = strconv.AppendInt(append(append(id, tag...), '-'), int64(p.trail), 10)
	return string(strconv.AppendInt(append(id, '-'), int64(p.event), 10))
}

// readPosition reads an event id. It says false for what is none, or has another tag.
func readPosition(tag, id string) (Position, bool) {
	rest, ok := strings.CutPrefix(id, tag+"-")
	if !ok {
		return Position{}, false
	}
	trail, event, _ := strings.Cut(rest, "-")
	var p Position
	var err, none error
	p.trail, err = strconv.Atoi(trail)
	p.event, none = strconv.Atoi(event)
	return p, err == nil && none == nil && p.trail >= 0 && p.event >= 0 && p.id(tag) == id // one spelling only
}

// tagOf gives the tag of a session's events, which does not tell the session's id.
func tagOf(session string) string {
	sum := sha256.Sum256([]byte("events of session " + session))
	return hex.EncodeToString(sum[:5])
}
