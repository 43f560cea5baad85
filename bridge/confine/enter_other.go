//go:build !linux

package confine

// Available says what this system offers: nothing.
func Available() Reach {
	return Reach{Why: "this system has nothing that Drawbridge confines programs with: only Linux does"}
}

// Run does nothing here: nobody is confined.
func Run([]string) int { return 126 }
