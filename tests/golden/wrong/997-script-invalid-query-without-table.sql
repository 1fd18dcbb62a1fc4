SELECT ((1 FROM orders;
