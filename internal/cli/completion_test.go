package cli

import (
	"regexp"
	"testing"

	"github.com/spf13/cobra"
)

// TestNamesAreCompleted checks that each command that takes the name of something configured or stored completes it.
func TestNamesAreCompleted(t *testing.T) {
	takesName := regexp.MustCompile(`^\S+ \[?(NAME|SERVER|CLIENT|ID)\b`)
	free := map[string]bool{
		"drawbridge mcp add": true, "drawbridge client add": true, // a new name
		"drawbridge secret set": true, "drawbridge secret remove": true, // names are read with the vault's key
		"drawbridge audit show": true, "drawbridge shield results": true, // too many to list
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		completes := cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0
		if takesName.MatchString(cmd.Use) && !completes && !free[cmd.CommandPath()] {
			t.Errorf("%s (%s) completes nothing", cmd.CommandPath(), cmd.Use)
		}
	}
	walk(NewRootCommand(Process{}))
}
