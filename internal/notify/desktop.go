package notify

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxNameLength bounds how many characters of a name are shown.
const maxNameLength = 80

// desktopTexts returns the title and the body of a notification. The names in it are chosen by others: characters that
// are not visible are shown as such.
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
