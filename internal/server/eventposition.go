package server

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// An eventPosition identifies an event: stream is the number of its stream, and event its number in the stream. A
// client that resumes a stream at a position receives the events after it.
type eventPosition struct{ stream, event int }

// isOwnStream reports whether the stream is the session's own stream, which belongs to no request.
func (p eventPosition) isOwnStream() bool { return p.stream == 0 }

// encodeID returns the event's id. The id contains the tag of the session, so it is invalid in other sessions.
func (p eventPosition) encodeID(tag string) string {
	id := make([]byte, 0, len(tag)+12)
	id = strconv.AppendInt(append(append(id, tag...), '-'), int64(p.stream), 10)
	return string(strconv.AppendInt(append(id, '-'), int64(p.event), 10))
}

// parseEventID parses an event id. It returns false if the id is invalid or has another tag.
func parseEventID(tag, id string) (eventPosition, bool) {
	rest, ok := strings.CutPrefix(id, tag+"-")
	if !ok {
		return eventPosition{}, false
	}
	trail, event, _ := strings.Cut(rest, "-")
	var p eventPosition
	var err, none error
	p.stream, err = strconv.Atoi(trail)
	p.event, none = strconv.Atoi(event)
	return p, err == nil && none == nil && p.stream >= 0 && p.event >= 0 && p.encodeID(tag) == id // only one spelling
}

// sessionTag returns the tag of a session's events. The tag does not reveal the session's id.
func sessionTag(session string) string {
	sum := sha256.Sum256([]byte("events of session " + session))
	return hex.EncodeToString(sum[:5])
}
