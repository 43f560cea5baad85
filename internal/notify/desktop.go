package notify

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxNameLength is the maximum number of characters of a name that a notification shows; a longer name is truncated.
const maxNameLength = 80

// desktopTexts returns the title and the body of a desktop notification. Clients and servers choose the names in the
// body, so invisible characters in them are shown as their code points.
func desktopTexts(a Approval) (title, body string) {
	caller := shownName(a.Caller)
	if a.Client != "" {
		caller = fmt.Sprintf("%s (%s)", caller, shownName(a.Client))
	}
	return "Drawbridge: a call waits for your approval",
		fmt.Sprintf("%s, called by %s\n%s", shownName(a.Tool), caller, a.ShowCommand())
}

func shownName(name string) string {
	return safetext.Line(safetext.Truncate(name, maxNameLength, safetext.Runes, "…"))
}
