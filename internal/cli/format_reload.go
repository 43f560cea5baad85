package cli

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
)

// formatReload returns a short description of the result of a reload by a subject, such as "the hub".
func formatReload(subject string, r hub.ReloadReport) string {
	var parts []string
	for _, did := range []struct {
		word string
		ids  []drawbridge.ServerID
	}{{"added", r.Added}, {"removed", r.Removed}, {"changed", r.Changed}} {
		if len(did.ids) == 0 {
			continue
		}
		parts = append(parts, did.word+" "+joinServerNames(did.ids))
	}
	if r.MovedClients > 0 {
		parts = append(parts, fmt.Sprintf("moved %d clients", r.MovedClients))
	}
	text := subject + " " + strings.Join(parts, ", ")
	switch {
	case len(r.Listed) > 0 && len(parts) == 0:
		text = subject + " listed " + joinServerNames(r.Listed) + " again"
	case len(r.Listed) > 0:
		text += ", listed " + joinServerNames(r.Listed) + " again"
	case len(parts) == 0 && len(r.Away) > 0:
		return "not connected, listed again at the next start: " + joinServerNames(r.Away)
	case len(parts) == 0:
		return subject + " is up to date"
	}
	if len(r.Away) > 0 {
		text += "; not connected, listed again at the next start: " + joinServerNames(r.Away)
	}
	return text
}

// joinServerNames joins the names of the first four servers and adds the number of the others.
func joinServerNames(ids []drawbridge.ServerID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return joinFirst(words, 4)
}

// joinFirst joins the first n texts and adds the number of the others.
func joinFirst(all []string, n int) string {
	if len(all) <= n {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:n], ", "), len(all)-n)
}
