"""Other engines that join files and delete what nobody reads, in place of the maintainer itself."""
