//go:build !linux

package confine

// DetectSupport reports that this system does not support confinement.
func DetectSupport() Support {
	return Support{MissingReason: "Drawbridge can confine programs on Linux only"}
}

// RunConfined returns an error status: this system cannot confine programs.
func RunConfined([]string) int { return 126 }
