export const words = 'First words';
