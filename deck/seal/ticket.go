package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A server names its tasks as it likes: two servers may use one name, and many can be guessed. So callers know a task by a
// ticket, which says whose task it is, and proves by a MAC that this deck, or one with the same key, gave it to this
// principal. A forged one, and one of another principal, is no ticket at all. It is made of nothing but what it says, so
// that no table is needed to find the server, and the same task always has the same ticket: in a list, in a notification,
// after a restart.

const (
	ticketVersion = 1
	ticketMAC     = 16
	// ticketHead is the version, the kind, the MAC, and the length of the server's id.
	ticketHead = 2 + ticketMAC + 1
)

// A Kind says what a ticket is for: nothing else opens with it.
type Kind byte

// The kinds.

const (
	// A task of one generation means nothing to a caller of the other one, who has other methods for it.
	LegacyTask Kind = 'l'
	ModernTask Kind = 'm'
	// A ListCursor is where a list of tasks goes on.
	ListCursor Kind = 'c'
)

// A Ticket leads to something of a server: Own is the server's word for it.
type Ticket struct {
	Kind   Kind
	Server drawbridge.ServerID
	Own    string
}

// Ticket writes a ticket for a principal, in URL-safe Base64: it fits into a header as it is.
func (s Sealer) Ticket(principal string, t Ticket) string { return t.text(s.tickets[0], principal) }

func (t Ticket) text(key []byte, principal string) string {
	out := make([]byte, 2, ticketHead+len(t.Server)+len(t.Own))
	out[0], out[1] = ticketVersion, byte(t.Kind)
	h := hmac.New(sha256.New, key)
	h.Write(out)
	writeParts(h, []byte(principal), []byte(t.Server), []byte(t.Own))
	out = append(out, h.Sum(nil)[:ticketMAC]...)
	out = append(append(append(out, byte(len(t.Server))), t.Server...), t.Own...)
	return base64.RawURLEncoding.EncodeToString(out)
}

// OpenTicket reads a ticket that was written for this principal, by any of the keys.
func (s Sealer) OpenTicket(principal, text string, kind Kind) (Ticket, bool) {
	t, ok := parseTicket(text)
	if !ok || t.Kind != kind {
		return Ticket{}, false
	}
	// The whole text is compared: Base64 has more than one way to write the same bytes.
	return t, slices.ContainsFunc(s.tickets, func(key []byte) bool {
		return hmac.Equal([]byte(text), []byte(t.text(key, principal)))
	})
}

// parseTicket takes a ticket apart and believes it.
func parseTicket(text string) (Ticket, bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < ticketHead || b[0] != ticketVersion {
		return Ticket{}, false
	}
	end := ticketHead + int(b[ticketHead-1])
	if end > len(b) {
		return Ticket{}, false
	}
	return Ticket{Kind(b[1]), drawbridge.ServerID(b[ticketHead:end]), string(b[end:])}, true
}
