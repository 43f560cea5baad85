package cli

import (
	"os"
	"strconv"
	"strings"
)

// parentProgram returns the name of the program that started this one.
func parentProgram() string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
