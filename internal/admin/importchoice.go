package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An ImportPick selects one definition of a scan by its index in Candidates. If As is not empty, it is the name of the
// copy.
type ImportPick struct {
	Index int
	As    drawbridge.ServerID
}

// PickImports returns the candidates of a scan. The picked ones have the status ImportNew and their chosen names. Other
// new ones have the status ImportLeftOut. The error is a UserError for a definition that cannot be copied and for a
// name that is already used, or a drawbridge.NameError.
func PickImports(scan config.ImportScan, picks []ImportPick) ([]config.ImportCandidate, error) {
	rows := slices.Clone(scan.Candidates)
	for i := range rows {
		if rows[i].Status == config.ImportNew {
			rows[i].Status, rows[i].Reason = config.ImportLeftOut, "you did not choose it"
		}
	}
	taken := slices.Clone(scan.OwnNames)
	for _, p := range picks {
		row := &rows[p.Index]
		if !IsImportable(scan.Candidates[p.Index]) {
			return nil, userErrorf("Server %q of %s cannot be copied: %s.", row.Name, row.ProviderTitle, row.Reason)
		}
		if p.As != "" {
			row.Name = p.As
		}
		if err := row.Name.Validate(); err != nil {
			return nil, err
		}
		if slices.Contains(taken, row.Name) {
			return nil, userErrorf("The name %q is taken: choose another name for the one of %s with --as %s:%s=NAME.",
				row.Name, row.ProviderTitle, row.Provider, scan.Candidates[p.Index].Name)
		}
		taken = append(taken, row.Name)
		row.Status, row.Reason = config.ImportNew, ""
	}
	return rows, nil
}

// IsImportable reports whether a definition can be copied, under its own or another name.
func IsImportable(c config.ImportCandidate) bool {
	switch c.Status {
	case config.ImportNew, config.ImportShadowed, config.ImportConflict:
		return len(c.Raw) > 0
	}
	return false
}

// ParseImportPicks converts the words of a command line to picks. servers are words of the form [PROGRAM:]NAME; if
// there are any, only these definitions are picked. Without servers every new definition is picked. renames are words
// of the form [PROGRAM:]NAME=NEW; they pick further definitions under another name. The error is a UserError.
func ParseImportPicks(scan config.ImportScan, servers, renames []string) ([]ImportPick, error) {
	var picks []ImportPick
	for i, c := range scan.Candidates {
		if len(servers) == 0 && c.Status == config.ImportNew {
			picks = append(picks, ImportPick{Index: i})
		}
	}
	add := func(p ImportPick) {
		picks = slices.DeleteFunc(picks, func(old ImportPick) bool { return old.Index == p.Index })
		picks = append(picks, p)
	}
	for _, word := range servers {
		i, err := findCandidate(scan.Candidates, word)
		if err != nil {
			return nil, err
		}
		c := scan.Candidates[i]
		picks = slices.DeleteFunc(picks, func(old ImportPick) bool { return scan.Candidates[old.Index].Name == c.Name })
		add(ImportPick{Index: i})
	}
	for _, word := range renames {
		old, name, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, userErrorf("Invalid --as value %q. Write [PROGRAM:]NAME=NEW.", word)
		}
		i, err := findCandidate(scan.Candidates, old)
		if err != nil {
			return nil, err
		}
		add(ImportPick{i, drawbridge.ServerID(name)})
	}
	slices.SortFunc(picks, func(a, b ImportPick) int { return a.Index - b.Index })
	return picks, nil
}

// findCandidate returns the index of the importable definition with the name in word, which has the form
// [PROGRAM:]NAME.
func findCandidate(rows []config.ImportCandidate, word string) (int, error) {
	program, name, ok := strings.Cut(word, ":")
	if !ok {
		program, name = "", word
	}
	var found []int
	var named []string
	for i, c := range rows {
		if string(c.Name) == name && (program == "" || c.Provider == program) && IsImportable(c) {
			found = append(found, i)
			named = append(named, c.Provider+":"+name)
		}
	}
	switch {
	case len(found) == 0:
		return 0, userErrorf("Found no server %q that can be copied (drawbridge import --dry-run lists them).", word)
	case len(found) > 1 && program == "":
		return 0, userErrorf("Several programs have a server %q: write %s.", name, strings.Join(named, " or "))
	}
	return found[0], nil
}

// FreeImportName returns an unused name for a copy whose own name is already used: NAME-PROGRAM or NAME-PROGRAM-NUMBER.
func FreeImportName(scan config.ImportScan, picks []ImportPick, i int) drawbridge.ServerID {
	taken := slices.Clone(scan.OwnNames)
	for _, c := range scan.Candidates {
		taken = append(taken, c.Name)
	}
	for _, p := range picks {
		taken = append(taken, p.As)
	}
	c := scan.Candidates[i]
	name := drawbridge.ServerID(fmt.Sprintf("%s-%s", c.Name, c.Provider))
	for n := 2; slices.Contains(taken, name); n++ {
		name = drawbridge.ServerID(fmt.Sprintf("%s-%s-%d", c.Name, c.Provider, n))
	}
	return name
}

// UnresolvedPicks returns the indexes of the picks whose name is already used by one of the person's servers or by an
// earlier pick.
func UnresolvedPicks(scan config.ImportScan, picks []ImportPick) (clashes []int) {
	taken := slices.Clone(scan.OwnNames)
	for n, p := range picks {
		name := p.As
		if name == "" {
			name = scan.Candidates[p.Index].Name
		}
		if slices.Contains(taken, name) {
			clashes = append(clashes, n)
			continue
		}
		taken = append(taken, name)
	}
	return clashes
}

// An ImportOffer is a definition that a person can choose to copy.
type ImportOffer struct {
	Index int
	Name  drawbridge.ServerID
	// Programs are the titles of the programs that have the same definition.
	Programs []string
	// Runs is the command line or the URL, without secrets.
	Runs string
	// Marked is set if the definition is copied unless the person deselects it.
	Marked bool
	// Note explains to people why the definition is not marked, and which members were changed or omitted.
	Note string
}

// ImportOffers returns the definitions of a scan that can be copied. It returns nil if no definition is new. It
// includes a definition whose name the person's configuration already uses for another definition. If there are only
// such definitions, the person has already decided on them.
func ImportOffers(scan config.ImportScan) (offers []ImportOffer) {
	fresh := false
	for i, c := range scan.Candidates {
		if !IsImportable(c) || c.SameAs != nil {
			continue
		}
		fresh = fresh || c.Status == config.ImportNew
		note := c.Reason
		if c.Status == config.ImportShadowed {
			note = "another definition of the same name"
		}
		notes := slices.Clone(c.Notes)
		if note != "" {
			notes = append([]string{note}, notes...)
		}
		offers = append(offers, ImportOffer{Index: i, Name: c.Name, Programs: []string{c.ProviderTitle},
			Runs: config.Server{Raw: c.Raw}.RedactedCommandLine(), Marked: c.Status == config.ImportNew,
			Note: strings.Join(notes, "; ")})
	}
	if !fresh {
		return nil
	}
	for _, c := range scan.Candidates {
		if c.SameAs == nil {
			continue
		}
		for n := range offers {
			if offers[n].Index == *c.SameAs && !slices.Contains(offers[n].Programs, c.ProviderTitle) {
				offers[n].Programs = append(offers[n].Programs, c.ProviderTitle)
			}
		}
	}
	return offers
}
